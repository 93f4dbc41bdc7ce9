//! Limits per client: open connections, and lookups of codes that do not exist.
//!
//! 1. Guessing random codes is the way to find other people's links, and each unknown code may cost
//!    a query. A client with too many unknown codes is refused, after a delay, without a query
//!    until its budget has grown again. Cached links stay available to it; a link enters the cache
//!    only when it is requested.
//! 2. An IPv6 client usually has a /64 to itself, so an IPv6 address counts as its /64 network.
//! 3. Behind a proxy all clients share the proxy's address. The configured proxies, and no others,
//!    are trusted to name the client that they speak for.
//! 4. A client with all its connections in use gets a new one in place of its own idlest. So its
//!    silent connections keep out neither other clients nor its neighbours behind the same address.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use daemon::network;
use foldhash::quality::RandomState;
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use ipnet::IpNet;
use metrics::Counter;
use tokio::time::Instant;

use crate::{
    budgets::Rate,
    client_address::{ClientAddresses, FORWARDED},
    connection_timeouts::{ConnectionHandle, idlest},
};

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

/// The connections and the budgets of all clients.
pub struct Clients {
    addresses: ClientAddresses,
    country_header: Option<HeaderName>,
    per_client: u32,
    unknown_codes: Rate,
    /// Handshakes of each client.
    handshakes: Rate,
    since: Instant,
    connections: Mutex<Connections>,
}

/// Maximum number of TLS handshakes of a client in a minute.
const HANDSHAKES_PER_MINUTE: u32 = 1_200;

/// The connections of each client, by sequence number. A new connection has no handle until it is
/// registered.
#[derive(Default)]
struct Connections {
    next: u64,
    by_client: HashMap<IpAddr, Handles, RandomState>,
}

type Handles = HashMap<u64, Option<ConnectionHandle>, RandomState>;

impl Clients {
    /// Creates the limits. `share` is the number of connections per client if `limits` has none,
    /// and `unread` counts requests of proxies whose client cannot be read.
    #[must_use]
    pub fn new(limits: ClientLimits, share: u32, unread: Counter) -> Self {
        Self {
            addresses: ClientAddresses::new(limits.trusted_proxies, limits.client_header, unread),
            country_header: limits.country_header,
            per_client: limits.connections.unwrap_or(share),
            unknown_codes: Rate::new(limits.unknown_codes),
            handshakes: Rate::new(HANDSHAKES_PER_MINUTE),
            since: Instant::now(),
            connections: Mutex::default(),
        }
    }

    /// Registers a connection of a client, if necessary in place of its idlest ones. Returns `None`
    /// if all its connections are being answered. A trusted proxy has no limit.
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

    /// Registers the handle with which a connection can be closed, unless the connection has
    /// already lost its place.
    pub fn set_handle(&self, place: Option<(IpAddr, u64)>, handle: ConnectionHandle) {
        let Some((address, number)) = place else { return };
        let mut connections = self.connections();
        if let Some(place) =
            connections.by_client.get_mut(&address).and_then(|handles| handles.get_mut(&number))
        {
            *place = Some(handle);
        }
    }

    /// Returns whether a peer is a trusted proxy.
    #[must_use]
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.addresses.trusts(peer)
    }

    /// Returns the reader of the headers in which trusted proxies name their clients.
    #[must_use]
    pub fn addresses(&self) -> &ClientAddresses {
        &self.addresses
    }

    /// Returns the client on a connection from this peer: the peer itself, unless it is a trusted
    /// proxy, which names its client in these headers.
    #[must_use]
    pub fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let lines = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes);
        self.addresses.behind(peer, lines(self.addresses.list_header()), lines(&FORWARDED))
    }

    /// Returns the header in which trusted proxies give the client's country, if there is one.
    #[must_use]
    pub fn country_header(&self) -> Option<&HeaderName> {
        self.country_header.as_ref()
    }

    /// Returns the country that a trusted proxy gives for its client, verbatim from the configured
    /// header. Returns `None` if the header is absent, empty or not ASCII, or if the peer is not
    /// trusted.
    #[must_use]
    pub fn country<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.country_header.as_ref().filter(|_| self.trusts(peer))?;
        headers.get(name)?.to_str().ok().filter(|country| !country.is_empty())
    }

    /// Returns whether a peer may begin another TLS handshake. Each costs a processor up to a
    /// millisecond, and a client may open connections as fast as it closes others. A trusted proxy
    /// has no limit.
    #[must_use]
    pub fn may_shake_hands(&self, peer: IpAddr) -> bool {
        self.trusts(peer) || self.handshakes.spend(network(peer), self.since.elapsed()).is_ok()
    }

    /// Spends one unknown code of a client's budget, for a code that may not exist.
    ///
    /// # Errors
    /// Returns the time until the client may ask for another code.
    pub fn spend(&self, client: IpAddr) -> Result<(), Duration> {
        self.unknown_codes.spend(network(client), self.since.elapsed()).map(drop)
    }

    /// Gives an unknown code back to a client's budget, because the code exists or the lookup
    /// failed.
    pub fn give_back(&self, client: IpAddr) {
        self.unknown_codes.give_back(network(client));
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

/// A registered connection of a client; dropping it releases the connection's place.
pub struct ClientConnection {
    clients: Arc<Clients>,
    place: Option<(IpAddr, u64)>,
    ended: usize,
}

impl ClientConnection {
    /// Returns the address and the number under which [`Clients::set_handle`] registers the handle.
    /// Returns `None` if connections of the client are not limited.
    #[must_use]
    pub fn place(&self) -> Option<(IpAddr, u64)> {
        self.place
    }

    /// Returns whether other connections of the client were ended for this one, so that their slots
    /// become free in a moment.
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
            // A connection that was ended to make room is removed already.
            handles.remove(&number);
            if handles.is_empty() {
                connections.by_client.remove(&address);
            }
        }
    }
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
        let limits = ClientLimits {
            connections: Some(connections),
            unknown_codes,
            trusted_proxies,
            client_header: None,
            country_header: None,
        };
        Arc::new(Clients::new(limits, 9, Counter::noop()))
    }

    /// Returns a connection that is served until it is ended, with its other end.
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
            let mut serving = None;
            while let Ok(byte) = stream.read_u8().await {
                match byte {
                    b'?' => serving = Some(stream.connection().mark_serving()),
                    _ => stream.write_all(b"!").await.unwrap(),
                }
            }
            drop((permit, serving));
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

        // Connections on all threads count: the silent one goes first, then the idle one.
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
