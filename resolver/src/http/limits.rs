//! What one client may take from the others: connections, and lookups of codes that do not exist.
//!
//! 1. Asking for codes at random is how somebody would look for other people's links, and each such code may cost a query. Who has
//!    asked for too many is refused before the database is asked, and not at once, until the budget has grown again; links in the cache
//!    go on, which a new link is only after it was asked for once.
//! 2. IPv6 clients have a /64 to themselves, so that is what counts as an address.
//! 3. Behind a proxy all clients have its address. Proxies that are named are believed about whom they speak for, and only they.
//! 4. A client that has all its connections gets another in the place of its own idlest. So silent
//!    connections keep neither other clients out nor the neighbours behind the same address.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use daemon::network;
use foldhash::quality::RandomState;
use hyper::{
    HeaderMap, Request,
    header::{HeaderName, HeaderValue},
};
use ipnet::IpNet;
use tokio::time::Instant;

use super::{
    budgets::Rate,
    pulse::{Seat, idlest},
};

/// In which header a proxy says for whom it asks.
const FORWARDED_FOR: &str = "x-forwarded-for";

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
    connections: Mutex<Connections>,
}

/// The connections of each client, by a number. A connection that was just taken has no seat yet.
#[derive(Default)]
struct Connections {
    next: u64,
    by_client: HashMap<IpAddr, Seats, RandomState>,
}

type Seats = HashMap<u64, Option<Seat>, RandomState>;

impl Clients {
    /// With a share of connections for whoever is not said to have another.
    pub(crate) fn new(limits: ClientLimits, share: u32) -> Self {
        let per_client = limits.connections.unwrap_or(share);
        let unknown_codes = Rate::new(limits.unknown_codes);
        Self { limits, per_client, unknown_codes, since: Instant::now(), connections: Mutex::default() }
    }

    /// Takes one of a client's connections, if need be in the place of its idlest; none when all it
    /// may have are being answered. A proxy may have any number.
    pub(super) fn connect(self: &Arc<Self>, peer: IpAddr) -> Option<Connected> {
        let mut connected = Connected { clients: Arc::clone(self), place: None, ended: 0 };
        if self.per_client == 0 || self.trusts(peer) {
            return Some(connected);
        }
        let (address, mut ended) = (network(peer), Vec::new());
        let mut connections = self.connections();
        let number = connections.next;
        let seats = connections.by_client.entry(address).or_default();
        if seats.len() >= usize::try_from(self.per_client).unwrap_or(usize::MAX) {
            let idleness =
                |(number, seat): (&u64, &Option<Seat>)| (*number, seat.as_ref().and_then(Seat::idleness));
            ended
                .extend(idlest(seats.iter().map(idleness)).iter().filter_map(|number| seats.remove(number)?));
            if ended.is_empty() {
                return None;
            }
        }
        seats.insert(number, None);
        connections.next += 1;
        drop(connections);
        ended.iter().for_each(Seat::end);
        (connected.place, connected.ended) = (Some((address, number)), ended.len());
        Some(connected)
    }

    /// Notes how a connection is ended, unless it was ended meanwhile.
    pub(super) fn attend(&self, place: Option<(IpAddr, u64)>, seat: Seat) {
        let Some((address, number)) = place else { return };
        let mut connections = self.connections();
        if let Some(place) = connections.by_client.get_mut(&address).and_then(|seats| seats.get_mut(&number))
        {
            *place = Some(seat);
        }
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

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

/// A client's connection, until it is dropped.
pub(super) struct Connected {
    clients: Arc<Clients>,
    place: Option<(IpAddr, u64)>,
    ended: usize,
}

impl Connected {
    /// Where its seat is to be noted.
    pub(super) fn place(&self) -> Option<(IpAddr, u64)> {
        self.place
    }

    /// Whether others of the client were ended for it: their places become free in a moment.
    pub(super) fn has_ended_others(&self) -> bool {
        self.ended > 0
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let Some((address, number)) = self.place else { return };
        let mut connections = self.clients.connections();
        if let Some(seats) = connections.by_client.get_mut(&address) {
            // It is not there when it had to make room.
            seats.remove(&number);
            if seats.is_empty() {
                connections.by_client.remove(&address);
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
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        task::JoinHandle,
        time::sleep,
    };

    use super::*;
    use crate::http::pulse::Ward;

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

    /// A connection that is served until it is ended, and the other end of it.
    fn serve(clients: &Arc<Clients>, ward: &Arc<Ward>, peer: &str) -> Option<(DuplexStream, JoinHandle<()>)> {
        let connected = clients.connect(ip(peer))?;
        let (far, near) = duplex(64);
        let (place, mut stream) = (connected.place(), ward.attend(near));
        let patient = stream.patient();
        let task = tokio::spawn(async move {
            while let Ok(byte) = stream.read_u8().await {
                match byte {
                    b'?' => stream.patient().is_served(),
                    _ => stream.write_all(b"!").await.unwrap(),
                }
            }
            drop(connected);
        });
        clients.attend(place, ward.admit(patient, task.abort_handle()));
        Some((far, task))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_gets_another_connection_in_the_place_of_its_idlest() {
        let clients = clients(3, 0, &["10.0.0.0/8"]);
        let wards = [Arc::new(Ward::default()), Arc::new(Ward::default())];
        let watching = wards.clone().map(|ward| tokio::spawn(ward.watch()));
        let (mut used, of_used) = serve(&clients, &wards[0], "192.0.2.1").unwrap();
        used.write_all(b".").await.unwrap();
        sleep(Duration::from_secs(2)).await;
        let (_silent, of_silent) = serve(&clients, &wards[1], "::ffff:192.0.2.1").unwrap();
        let (mut asking, of_asking) = serve(&clients, &wards[0], "192.0.2.1").unwrap();
        asking.write_all(b"?").await.unwrap();
        let (_other, of_other) = serve(&clients, &wards[0], "192.0.2.2").unwrap();
        sleep(Duration::from_secs(2)).await;

        // On any thread: the silent one goes first, and then the one that rests.
        let mut third = serve(&clients, &wards[0], "192.0.2.1").unwrap();
        third.0.write_all(b"?").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(of_silent.is_finished() && !of_used.is_finished());
        let mut fourth = serve(&clients, &wards[1], "192.0.2.1").unwrap();
        fourth.0.write_all(b"?").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(of_used.is_finished() && !of_asking.is_finished() && !of_other.is_finished());
        assert!(serve(&clients, &wards[0], "192.0.2.1").is_none(), "all of them are being answered");
        drop(asking);
        of_asking.await.unwrap();
        assert!(serve(&clients, &wards[0], "192.0.2.1").is_some());
        watching.iter().for_each(JoinHandle::abort);
    }

    #[tokio::test]
    async fn connections_are_counted_by_network_and_come_back() {
        let clients = clients(2, 0, &["10.0.0.0/8"]);
        let ours = [ip("2001:db8::1"), ip("2001:db8::2:1")].map(|peer| clients.connect(peer).unwrap());
        assert!(clients.connect(ip("2001:db8::3")).is_none(), "one /64 is one client");
        assert!(clients.connect(ip("2001:db8:0:1::3")).is_some());
        let proxied: Vec<_> = (0..9).map(|_| clients.connect(ip("10.1.2.3")).unwrap()).collect();
        drop((ours, proxied));
        assert!(clients.connections().by_client.is_empty());
        assert!(clients.connect(ip("2001:db8::3")).is_some());
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
