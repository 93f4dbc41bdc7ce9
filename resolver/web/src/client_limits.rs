//! Who a client is, and how many codes that do not exist it may request.
//!
//! 1. Guessing random codes is the way to find other people's links, and each unknown code may cost
//!    a query. A client with too many unknown codes is refused, after a delay, without a query
//!    until its budget has grown again. Cached links stay available to it; a link enters the cache
//!    only when it is requested.
//! 2. An IPv6 client usually has a /64 to itself, so an IPv6 address counts as its /64 network.
//! 3. Behind a proxy all clients share the proxy's address: `client_address.rs` reads theirs.

use std::{net::IpAddr, time::Duration};

use hyper::{HeaderMap, header::HeaderName};
use ipnet::IpNet;
use limits::{Rate, network};
use metrics::Counter;

/// The header in which proxies name the scheme of their client's connection.
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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

/// The reader of clients' addresses (`client_address.rs`), and the budgets of all clients.
pub struct Clients {
    /// The limits that the budgets were created with.
    pub limits: ClientLimits,
    /// Counts requests of trusted proxies that name no client that can be read or believed.
    pub(crate) unread: Counter,
    unknown_codes: Rate,
}

impl Clients {
    /// Creates the budgets. `unread` counts requests of proxies whose client cannot be read.
    pub fn new(limits: ClientLimits, unread: Counter) -> Self {
        let unknown_codes = Rate::new(limits.unknown_codes);
        Self { limits, unread, unknown_codes }
    }

    /// Returns the country that a trusted proxy gives for its client, verbatim from the configured
    /// header; `None` if that is absent, empty or not ASCII, or the peer is not trusted.
    pub fn country<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.limits.country_header.as_ref().filter(|_| self.trusts(peer))?;
        headers.get(name)?.to_str().ok().filter(|country| !country.is_empty())
    }

    /// Returns the scheme that a trusted proxy names for its client's connection. Of several, the
    /// first is the one of the client.
    pub fn scheme<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let named = headers.get(&FORWARDED_PROTO).filter(|_| self.trusts(peer))?.to_str().ok()?;
        named.split(',').next().map(str::trim)
    }

    /// Spends one unknown code of a client's budget. The error is the time until it may ask again.
    pub fn spend(&self, client: IpAddr) -> Result<(), Duration> {
        self.unknown_codes.spend(network(client)).map(drop)
    }

    /// Gives an unknown code back to a client's budget, because the code exists or the lookup
    /// failed.
    pub fn give_back(&self, client: IpAddr) {
        self.unknown_codes.give_back(network(client));
    }
}
