//! Who a client is, and how many codes that do not exist it may request.
//!
//! 1. Guessing random codes is the way to find other people's links, and each unknown code may cost
//!    a query. A client with too many unknown codes is refused, after a delay, without a query
//!    until its budget has grown again. Cached links stay available to it; a link enters the cache
//!    only when it is requested.
//! 2. An IPv6 client usually has a /64 to itself, so an IPv6 address counts as its /64 network.
//! 3. Behind a proxy all clients share the proxy's address. The configured proxies, and no others,
//!    are trusted to name the client that they speak for.

use std::{net::IpAddr, time::Duration};

use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use ipnet::IpNet;
use limits::{Rate, network};
use metrics::Counter;

use crate::client_address::{ClientAddresses, FORWARDED};

/// The limits of one client, and the proxies that are trusted to name clients.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// The maximum number of open connections; 0 for no limit, `None` for a share of all
    /// connections.
    pub connections: Option<u32>,
    /// The maximum number of unknown codes per minute; 0 for no limit.
    pub unknown_codes: u32,
    /// The networks of proxies that are trusted to name their clients.
    pub trusted_proxies: Vec<IpNet>,
    /// The only header in which trusted proxies name their clients; `None` for `X-Forwarded-For`
    /// and `Forwarded`.
    pub client_header: Option<HeaderName>,
    /// The header in which trusted proxies give the client's country.
    pub country_header: Option<HeaderName>,
}

/// The reader of clients' addresses, and the budgets of all clients.
pub struct Clients {
    addresses: ClientAddresses,
    country_header: Option<HeaderName>,
    unknown_codes: Rate,
}

impl Clients {
    /// Creates the budgets. `unread` counts requests of proxies whose client cannot be read.
    pub fn new(limits: ClientLimits, unread: Counter) -> Self {
        Self {
            addresses: ClientAddresses::new(limits.trusted_proxies, limits.client_header, unread),
            country_header: limits.country_header,
            unknown_codes: Rate::new(limits.unknown_codes),
        }
    }

    /// Returns whether a peer is a trusted proxy.
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.addresses.trusts(peer)
    }

    /// Returns the reader of the headers in which trusted proxies name their clients.
    pub fn addresses(&self) -> &ClientAddresses {
        &self.addresses
    }

    /// Returns the client on a connection from this peer: the peer itself, unless it is a trusted
    /// proxy, which names its client in these headers.
    pub fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let lines = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes);
        self.addresses.behind(peer, lines(self.addresses.list_header()), lines(&FORWARDED))
    }

    /// Returns the header in which trusted proxies give the client's country, if there is one.
    pub fn country_header(&self) -> Option<&HeaderName> {
        self.country_header.as_ref()
    }

    /// Returns the country that a trusted proxy gives for its client, verbatim from the configured
    /// header. Returns `None` if the header is absent, empty or not ASCII, or if the peer is not
    /// trusted.
    pub fn country<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.country_header.as_ref().filter(|_| self.trusts(peer))?;
        headers.get(name)?.to_str().ok().filter(|country| !country.is_empty())
    }

    /// Spends one unknown code of a client's budget, for a code that may not exist.
    ///
    /// # Errors
    /// Returns the time until the client may ask for another code.
    pub fn spend(&self, client: IpAddr) -> Result<(), Duration> {
        self.unknown_codes.spend(network(client)).map(drop)
    }

    /// Gives an unknown code back to a client's budget, because the code exists or the lookup
    /// failed.
    pub fn give_back(&self, client: IpAddr) {
        self.unknown_codes.give_back(network(client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_trusted_proxies_say_is_believed() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let limits = ClientLimits {
            connections: None,
            unknown_codes: 0,
            trusted_proxies: ["10.0.0.0/8", "::1/128"].map(|proxy| proxy.parse().unwrap()).to_vec(),
            client_header: None,
            country_header: None,
        };
        let clients = Clients::new(limits, Counter::noop());
        let client_of = |peer, lines: &[(&'static str, &'static str)]| {
            let lines = lines
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            clients.client_of(ip(peer), &HeaderMap::from_iter(lines)).to_string()
        };
        let listed = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "192.0.2.7:4711")];
        let forwarded = [("forwarded", "for=198.51.100.1"), ("forwarded", "for=192.0.2.7")];
        for lines in [&listed, &forwarded] {
            assert_eq!(client_of("10.0.0.1", lines), "192.0.2.7");
            assert_eq!(client_of("::ffff:10.1.1.1", lines), "192.0.2.7");
            assert_eq!(client_of("11.0.0.1", lines), "11.0.0.1");
        }
    }
}
