//! What one client may take from the others: connections, and lookups of codes that do not exist.
//!
//! 1. Asking for codes at random is how somebody would look for other people's links, and each such code may cost a query. Who has
//!    asked for too many is refused before the database is asked, and not at once, until the budget has grown again; links in the cache
//!    go on, which a new link is only after it was asked for once.
//! 2. IPv6 clients have a /64 to themselves, so that is what counts as an address.
//! 3. Behind a proxy all clients have its address. Proxies that are named are believed about whom they speak for, and only they.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use hyper::{
    HeaderMap, Request,
    header::{HeaderName, HeaderValue},
};
use ipnet::IpNet;
use issuer::daemon::network;
use tokio::time::Instant;

use super::budgets::Rate;

/// In which header a proxy says for whom it asks.
pub(super) const FORWARDED_FOR: &str = "x-forwarded-for";

/// How much one client may take.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Connections at a time; 0 for any number, and a share of all there may be when absent.
    pub connections: Option<u32>,
    /// Codes that do not exist, per minute; 0 for any number.
    pub unknown_codes: u32,
    /// Whose word about their clients is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which they say from which country a client comes.
    pub country_header: Option<HeaderName>,
}

/// Who takes how much.
pub(crate) struct Clients {
    limits: ClientLimits,
    per_client: u32,
    unknown_codes: Rate,
    since: Instant,
    connections: Mutex<HashMap<IpAddr, u32>>,
}

impl Clients {
    /// With a share of connections for whoever is not said to have another.
    pub(crate) fn new(limits: ClientLimits, share: u32) -> Self {
        let per_client = limits.connections.unwrap_or(share);
        let unknown_codes = Rate::new(limits.unknown_codes);
        Self { limits, per_client, unknown_codes, since: Instant::now(), connections: Mutex::default() }
    }

    /// Takes one of a client's connections; none when it has too many. A proxy may have any number.
    pub(super) fn connect(self: &Arc<Self>, peer: IpAddr) -> Option<Connected> {
        let address = network(peer);
        if self.per_client > 0 && !self.trusts(peer) {
            let mut connections = self.connections();
            let count = connections.entry(address).or_default();
            if *count >= self.per_client {
                return None;
            }
            *count += 1;
            return Some(Connected { clients: Arc::clone(self), address: Some(address) });
        }
        Some(Connected { clients: Arc::clone(self), address: None })
    }

    /// Whether a peer is a proxy that speaks for others.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        self.limits.trusted_proxies.iter().any(|proxies| proxies.contains(&peer.to_canonical()))
    }

    /// Who asks, when a trusted proxy passes the question on: the last address in the lines of `X-Forwarded-For` that is not a trusted
    /// proxy's. What stands before that, anybody may have written.
    pub(super) fn behind<'a>(
        &self,
        proxy: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> IpAddr {
        let mut client = proxy;
        for address in lines.rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
            let address = std::str::from_utf8(address).ok().and_then(|address| address.trim().parse().ok());
            let Some::<IpAddr>(address) = address else { break };
            client = address.to_canonical();
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    /// Who asks on a connection of this peer: the peer, unless that is a trusted proxy.
    pub(super) fn client_of<'a>(
        &self,
        peer: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> IpAddr {
        if self.trusts(peer) { self.behind(peer, lines) } else { peer }
    }

    /// From which country a client comes, in two letters, if a trusted proxy says so.
    pub(super) fn country<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.limits.country_header.as_ref().filter(|_| self.trusts(peer))?;
        headers.get(name)?.to_str().ok().filter(|country| !country.is_empty())
    }

    /// Takes a code that may not exist from a client's budget; or how long it has to wait until it may ask for another.
    pub(super) fn spend(&self, client: IpAddr) -> Result<(), Duration> {
        self.unknown_codes.spend(network(client), self.since.elapsed()).map(drop)
    }

    /// Gives it back: the code exists, or nobody knows.
    pub(super) fn give_back(&self, client: IpAddr) {
        self.unknown_codes.give_back(network(client));
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

/// A client's connection, until it is dropped.
pub(super) struct Connected {
    clients: Arc<Clients>,
    address: Option<IpAddr>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut connections = self.clients.connections();
        if let Some(count) = connections.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&address);
            }
        }
    }
}

/// For whom a request is passed on, line by line.
pub(super) fn forwarded_for<B>(request: &Request<B>) -> impl DoubleEndedIterator<Item = &[u8]> {
    request.headers().get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn clients(connections: u32, unknown_codes: u32, proxies: &[&str]) -> Arc<Clients> {
        let trusted_proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
        let connections = Some(connections);
        Arc::new(Clients::new(
            ClientLimits { connections, unknown_codes, trusted_proxies, country_header: None },
            9,
        ))
    }

    #[test]
    fn connections_are_counted_by_address_and_come_back() {
        let clients = clients(2, 0, &["10.0.0.0/8"]);
        let kept = [ip("192.0.2.1"), ip("::ffff:192.0.2.1")].map(|peer| clients.connect(peer).unwrap());
        assert!(clients.connect(ip("192.0.2.1")).is_none());
        let ours = [ip("2001:db8::1"), ip("2001:db8::2:1")].map(|peer| clients.connect(peer).unwrap());
        assert!(clients.connect(ip("2001:db8::3")).is_none(), "one /64 is one client");
        assert!(clients.connect(ip("2001:db8:0:1::3")).is_some());
        let proxied: Vec<_> = (0..9).map(|_| clients.connect(ip("10.1.2.3")).unwrap()).collect();
        drop((kept, ours, proxied));
        assert!(clients.connections().is_empty());
        assert!(clients.connect(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn only_what_trusted_proxies_say_is_believed() {
        let clients = clients(0, 0, &["10.0.0.0/8", "::1/128"]);
        let behind_bytes =
            |lines: &[&[u8]]| clients.behind(ip("10.0.0.1"), lines.iter().copied()).to_string();
        let behind =
            |lines: &[&str]| behind_bytes(&lines.iter().map(|line| line.as_bytes()).collect::<Vec<_>>());
        for (lines, client) in [
            (&[][..], "10.0.0.1"),
            (&["192.0.2.7"], "192.0.2.7"),
            (&["198.51.100.1, 192.0.2.7"], "192.0.2.7"),
            (&["198.51.100.1, 192.0.2.7, 10.0.0.2"], "192.0.2.7"),
            (&["198.51.100.1", "192.0.2.7,10.0.0.2"], "192.0.2.7"),
            (&["192.0.2.7, nonsense, 10.0.0.2"], "10.0.0.2"),
            (&["nonsense"], "10.0.0.1"),
            (&["\u{e4}, 192.0.2.7"], "192.0.2.7"),
            (&["2001:db8::1"], "2001:db8::1"),
        ] {
            assert_eq!(behind(lines), client, "{lines:?}");
        }
        assert_eq!(
            behind_bytes(&[b"\xff, 192.0.2.7"]),
            "192.0.2.7",
            "nobody hides behind a byte of their own"
        );
        assert!(clients.trusts(ip("::ffff:10.1.1.1")));
        assert!(!clients.trusts(ip("11.0.0.1")));
    }
}
