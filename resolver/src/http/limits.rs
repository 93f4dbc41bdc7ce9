//! What one client may take from the others: connections, and lookups of codes that do not exist.
//!
//! 1. Asking for codes at random is how somebody would look for other people's links, and each such code may cost a query. Who has
//!    asked for too many is refused before the database is asked, and not at once, until the budget has grown again; links in the cache
//!    go on, which a new link is only after it was asked for once.
//! 2. Budgets are a fixed table of counters, so a flood from many addresses takes no memory. Two addresses may share a counter, and then
//!    a budget; which ones, nobody outside can foresee.
//! 3. IPv6 clients have a /64 to themselves, so that is what counts as an address.
//! 4. Behind a proxy all clients have its address. Proxies that are named are believed about whom they speak for, and only they.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use foldhash::quality::RandomState;
use hyper::{
    HeaderMap, Request,
    header::{HeaderName, HeaderValue},
};
use ipnet::IpNet;
use tokio::time::Instant;

/// Counters of budgets: half a megabyte.
const COUNTERS: usize = 65_536;
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// In which header a proxy says for whom it asks.
pub(super) const FORWARDED_FOR: &str = "x-forwarded-for";

/// How much one client may take.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Connections at a time; 0 for any number.
    pub connections: u32,
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
    budget: Budget,
    since: Instant,
    connections: Mutex<HashMap<IpAddr, u32>>,
}

impl Clients {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        let budget = Budget::new(limits.unknown_codes);
        Self { limits, budget, since: Instant::now(), connections: Mutex::default() }
    }

    /// Takes one of a client's connections; none when it has too many. A proxy may have any number.
    pub(super) fn connect(self: &Arc<Self>, peer: IpAddr) -> Option<Connected> {
        let address = network(peer);
        if self.limits.connections > 0 && !self.trusts(peer) {
            let mut connections = self.connections();
            let count = connections.entry(address).or_default();
            if *count >= self.limits.connections {
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

    /// From which country a client comes, in two letters, if a trusted proxy says so.
    pub(super) fn country<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.limits.country_header.as_ref().filter(|_| self.trusts(peer))?;
        headers.get(name)?.to_str().ok().filter(|country| !country.is_empty())
    }

    /// Takes a code that may not exist from a client's budget; or how long it has to wait until it may ask for another.
    pub(super) fn spend(&self, client: IpAddr) -> Result<(), Duration> {
        self.budget.spend(network(client), self.since.elapsed()).map(drop)
    }

    /// Gives it back: the code exists, or nobody knows.
    pub(super) fn give_back(&self, client: IpAddr) {
        self.budget.give_back(network(client));
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

/// What counts as one client.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// A budget that is full at first, holds a minute's worth and grows evenly: the generic cell rate algorithm (ITU-T I.371), which needs
/// one number for each client, the time at which all that was spent will have grown back.
pub(crate) struct Budget {
    /// In microseconds since the start.
    full_again: Box<[AtomicU64]>,
    /// What one of a minute's worth costs, in microseconds; 0 when all is free.
    cost: u64,
    hasher: RandomState,
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// So many.
    pub(crate) count: u64,
    /// When it is full again.
    pub(crate) full_in: Duration,
}

impl Budget {
    /// So many in a minute for each; 0 for any number.
    pub(crate) fn new(per_minute: u32) -> Self {
        let counters = if per_minute == 0 { 0 } else { COUNTERS };
        Self { full_again: counters_of(counters), cost: cost(per_minute), hasher: RandomState::default() }
    }

    /// One whose measure comes with each use.
    pub(crate) fn with_counters() -> Self {
        Self { full_again: counters_of(COUNTERS), cost: 0, hasher: RandomState::default() }
    }

    fn counter(&self, client: impl Hash) -> Option<&AtomicU64> {
        let place = usize::try_from(self.hasher.hash_one(client) >> 32).unwrap_or(0);
        self.full_again.get(place.checked_rem(self.full_again.len())?)
    }

    /// Takes one from a client's budget and says what is left; or when there is one again.
    pub(crate) fn spend(&self, client: impl Hash, now: Duration) -> Result<Left, Duration> {
        self.take(client, now, self.cost)
    }

    /// The same for a client who may take so many in a minute.
    pub(crate) fn spend_of(
        &self,
        client: impl Hash,
        now: Duration,
        per_minute: u32,
    ) -> Result<Left, Duration> {
        self.take(client, now, cost(per_minute))
    }

    fn take(&self, client: impl Hash, now: Duration, cost: u64) -> Result<Left, Duration> {
        let Some(counter) = self.counter(client).filter(|_| cost > 0) else {
            return Ok(Left { count: u64::MAX, full_in: Duration::ZERO });
        };
        let (now, most) = (micros(now), micros(now + MINUTE));
        let spent = |full_again: u64| Some(full_again.max(now) + cost).filter(|spent| *spent <= most);
        match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent) {
            Ok(before) => {
                let full_again = before.max(now) + cost;
                let full_in = Duration::from_micros(full_again - now);
                Ok(Left { count: (most - full_again) / cost, full_in })
            }
            Err(full_again) => Err(Duration::from_micros(full_again + cost - most)),
        }
    }

    /// Gives one back.
    pub(crate) fn give_back(&self, client: impl Hash) {
        let Some(counter) = self.counter(client) else { return };
        // A time that has passed means a full budget, whatever it is; and the closure never declines.
        let back = |full_again: u64| Some(full_again.saturating_sub(self.cost));
        let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, back);
    }
}

fn counters_of(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

fn cost(per_minute: u32) -> u64 {
    micros(MINUTE).checked_div(per_minute.into()).unwrap_or(0)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn clients(connections: u32, unknown_codes: u32, proxies: &[&str]) -> Arc<Clients> {
        let trusted_proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
        Arc::new(Clients::new(ClientLimits {
            connections,
            unknown_codes,
            trusted_proxies,
            country_header: None,
        }))
    }

    #[test]
    fn a_budget_is_a_minutes_worth_and_grows_evenly() {
        let budget = Budget::new(60);
        let (one, other, start) = (ip("192.0.2.1"), ip("192.0.2.2"), Duration::from_secs(100));
        for _ in 0..60 {
            assert!(budget.spend(one, start).is_ok());
        }
        for _ in 0..1_000 {
            assert_eq!(budget.spend(one, start), Err(Duration::from_secs(1)), "nobody gets into debt");
        }
        let left = Left { count: 59, full_in: Duration::from_secs(1) };
        assert_eq!(budget.spend(other, start), Ok(left), "each has its own");
        let threes = Budget::with_counters();
        let counts = [(); 3].map(|()| threes.spend_of(one, start, 3).map(|left| left.count));
        assert_eq!(counts, [Ok(2), Ok(1), Ok(0)]);
        assert_eq!(threes.spend_of(one, start, 3), Err(Duration::from_secs(20)));
        budget.give_back(one);
        assert!(budget.spend(one, start).is_ok());
        let later = start + Duration::from_secs(2);
        assert_eq!([(); 3].map(|()| budget.spend(one, later).is_ok()), [true, true, false], "two have grown");
        let free = Budget::new(0);
        assert!((0..1_000).all(|_| free.spend(one, start).is_ok()));
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
