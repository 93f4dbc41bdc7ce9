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

use crate::{
    budgets::Rate,
    connection_timeouts::{ConnectionHandle, idlest},
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
pub struct Clients {
    limits: ClientLimits,
    per_client: u32,
    unknown_codes: Rate,
    since: Instant,
    connections: Mutex<Connections>,
}

/// The connections of each client, by a number. A connection that was just taken has no handle yet.
#[derive(Default)]
struct Connections {
    next: u64,
    by_client: HashMap<IpAddr, Handles, RandomState>,
}

type Handles = HashMap<u64, Option<ConnectionHandle>, RandomState>;

impl Clients {
    /// With a share of connections for whoever is not said to have another.
    #[must_use]
    pub fn new(limits: ClientLimits, share: u32) -> Self {
        let per_client = limits.connections.unwrap_or(share);
        let unknown_codes = Rate::new(limits.unknown_codes);
        Self { limits, per_client, unknown_codes, since: Instant::now(), connections: Mutex::default() }
    }

    /// Takes one of a client's connections, if need be in the place of its idlest; none when all it
    /// may have are being answered. A proxy may have any number.
    #[must_use]
    pub fn connect(self: &Arc<Self>, peer: IpAddr) -> Option<ClientConnection> {
        let mut connection = ClientConnection { clients: Arc::clone(self), place: None, ended: 0 };
        if self.per_client == 0 || self.trusts(peer) {
            return Some(connection);
        }
        let (address, mut ended) = (network(peer), Vec::new());
        let mut connections = self.connections();
        let number = connections.next;
        let handles = connections.by_client.entry(address).or_default();
        if handles.len() >= usize::try_from(self.per_client).unwrap_or(usize::MAX) {
            let idleness = |(number, handle): (&u64, &Option<ConnectionHandle>)| {
                (*number, handle.as_ref().and_then(ConnectionHandle::idleness))
            };
            ended.extend(
                idlest(handles.iter().map(idleness)).iter().filter_map(|number| handles.remove(number)?),
            );
            if ended.is_empty() {
                return None;
            }
        }
        handles.insert(number, None);
        connections.next += 1;
        drop(connections);
        ended.iter().for_each(ConnectionHandle::close);
        (connection.place, connection.ended) = (Some((address, number)), ended.len());
        Some(connection)
    }

    /// Notes how a connection is ended, unless it was ended meanwhile.
    pub fn set_handle(&self, place: Option<(IpAddr, u64)>, handle: ConnectionHandle) {
        let Some((address, number)) = place else { return };
        let mut connections = self.connections();
        if let Some(place) =
            connections.by_client.get_mut(&address).and_then(|handles| handles.get_mut(&number))
        {
            *place = Some(handle);
        }
    }

    /// Whether a peer is a proxy that speaks for others.
    #[must_use]
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.limits.trusted_proxies.iter().any(|proxies| proxies.contains(&peer.to_canonical()))
    }

    /// Who asks, when a trusted proxy passes the question on: the last address in the lines of `X-Forwarded-For` that is not a trusted
    /// proxy's. What stands before that, anybody may have written.
    #[must_use]
    pub fn forwarded_client<'a>(
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
    #[must_use]
    pub fn client_of<'a>(&self, peer: IpAddr, lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> IpAddr {
        if self.trusts(peer) { self.forwarded_client(peer, lines) } else { peer }
    }

    /// From which country a client comes, in two letters, if a trusted proxy says so.
    #[must_use]
    pub fn country<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.limits.country_header.as_ref().filter(|_| self.trusts(peer))?;
        headers.get(name)?.to_str().ok().filter(|country| !country.is_empty())
    }

    /// Takes a code that may not exist from a client's budget.
    ///
    /// # Errors
    /// How long the client has to wait until it may ask for another.
    pub fn spend(&self, client: IpAddr) -> Result<(), Duration> {
        self.unknown_codes.spend(network(client), self.since.elapsed()).map(drop)
    }

    /// Gives it back: the code exists, or nobody knows.
    pub fn give_back(&self, client: IpAddr) {
        self.unknown_codes.give_back(network(client));
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

/// A client's connection, until it is dropped.
pub struct ClientConnection {
    clients: Arc<Clients>,
    place: Option<(IpAddr, u64)>,
    ended: usize,
}

impl ClientConnection {
    /// Where its handle is to be noted.
    #[must_use]
    pub fn place(&self) -> Option<(IpAddr, u64)> {
        self.place
    }

    /// Whether others of the client were ended for it: their places become free in a moment.
    #[must_use]
    pub fn has_ended_others(&self) -> bool {
        self.ended > 0
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let Some((address, number)) = self.place else { return };
        let mut connections = self.clients.connections();
        if let Some(handles) = connections.by_client.get_mut(&address) {
            // It is not there when it had to make room.
            handles.remove(&number);
            if handles.is_empty() {
                connections.by_client.remove(&address);
            }
        }
    }
}

/// For whom a request is passed on, line by line.
pub fn forwarded_for<B>(request: &Request<B>) -> impl DoubleEndedIterator<Item = &[u8]> {
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
    use crate::connection_timeouts::ThreadConnections;

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
    fn serve(
        clients: &Arc<Clients>,
        thread: &Arc<ThreadConnections>,
        peer: &str,
    ) -> Option<(DuplexStream, JoinHandle<()>)> {
        let permit = clients.connect(ip(peer))?;
        let (far, near) = duplex(64);
        let (place, mut stream) = (permit.place(), thread.track(near));
        let connection = stream.connection();
        let task = tokio::spawn(async move {
            while let Ok(byte) = stream.read_u8().await {
                match byte {
                    b'?' => stream.connection().mark_serving(),
                    _ => stream.write_all(b"!").await.unwrap(),
                }
            }
            drop(permit);
        });
        clients.set_handle(place, thread.register(connection, task.abort_handle()));
        Some((far, task))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_gets_another_connection_in_the_place_of_its_idlest() {
        let clients = clients(3, 0, &["10.0.0.0/8"]);
        let threads = [Arc::new(ThreadConnections::default()), Arc::new(ThreadConnections::default())];
        let watching = threads.clone().map(|thread| tokio::spawn(thread.enforce_timeouts()));
        let (mut used, of_used) = serve(&clients, &threads[0], "192.0.2.1").unwrap();
        used.write_all(b".").await.unwrap();
        sleep(Duration::from_secs(2)).await;
        let (_silent, of_silent) = serve(&clients, &threads[1], "::ffff:192.0.2.1").unwrap();
        let (mut asking, of_asking) = serve(&clients, &threads[0], "192.0.2.1").unwrap();
        asking.write_all(b"?").await.unwrap();
        let (_other, of_other) = serve(&clients, &threads[0], "192.0.2.2").unwrap();
        sleep(Duration::from_secs(2)).await;

        // On any thread: the silent one goes first, and then the one that rests.
        let mut third = serve(&clients, &threads[0], "192.0.2.1").unwrap();
        third.0.write_all(b"?").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(of_silent.is_finished() && !of_used.is_finished());
        let mut fourth = serve(&clients, &threads[1], "192.0.2.1").unwrap();
        fourth.0.write_all(b"?").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(of_used.is_finished() && !of_asking.is_finished() && !of_other.is_finished());
        assert!(serve(&clients, &threads[0], "192.0.2.1").is_none(), "all of them are being answered");
        drop(asking);
        of_asking.await.unwrap();
        assert!(serve(&clients, &threads[0], "192.0.2.1").is_some());
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
        let client_of_bytes =
            |lines: &[&[u8]]| clients.forwarded_client(ip("10.0.0.1"), lines.iter().copied()).to_string();
        let client_of =
            |lines: &[&str]| client_of_bytes(&lines.iter().map(|line| line.as_bytes()).collect::<Vec<_>>());
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
            assert_eq!(client_of(lines), client, "{lines:?}");
        }
        assert_eq!(
            client_of_bytes(&[b"\xff, 192.0.2.7"]),
            "192.0.2.7",
            "nobody hides behind a byte of their own"
        );
        assert!(clients.trusts(ip("::ffff:10.1.1.1")));
        assert!(!clients.trusts(ip("11.0.0.1")));
    }
}
