//! The open connections of a listener: how many there may be, and which one makes room for the
//! next.
//!
//! 1. Connections are limited in total and for each client (IPv6: one /64). At either limit the
//!    idlest are closed in favour of the next: those of that client, or those of all. So silent
//!    connections lock out neither other clients nor neighbours behind the same address.
//! 2. A connection with a request in progress is never closed for one of the same client: otherwise
//!    a neighbour behind the same address could cut it. If all have one, the next is refused. For
//!    another client it is closed only where requests may last for ever, as over gRPC: otherwise a
//!    few clients with endless calls would lock out all others.
//! 3. A connection that is closed keeps its descriptor until its task has run. So at most
//!    [`CLOSING`] may be in that state before the next is accepted: otherwise a burst would take
//!    the descriptors that the process keeps for itself.
//! 4. One scan a second closes connections that make no progress. A timer for each request, as
//!    hyper's own limit for a head, costs about as much as parsing it.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use metrics::Counter;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::coop::unconstrained,
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

use crate::{Connection, Rate, Seldom, network};

/// Interval of the search for overdue connections.
const TICK: Duration = Duration::from_secs(1);
/// Back-off after a failed accept, as when the system has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
/// Maximum number of closed connections that still have their descriptor.
pub(crate) const CLOSING: usize = 8;
/// The divisor for the number of connections that are closed at a time. Finding the idlest takes
/// longer than closing it, so a part of them is closed together.
const PART: usize = 64;
/// TLS handshakes of a client in a minute. Each costs a processor up to a millisecond, and a client
/// may open connections as fast as it closes others.
const HANDSHAKES_PER_MINUTE: u32 = 1_200;
/// The same of all clients together over gRPC, where few clients keep their connections.
const GRPC_HANDSHAKES_PER_MINUTE: u32 = 12_000;
/// The time without a request of a connection over HTTP/1, in seconds; nginx's default. A stream
/// without activity and an answer that the client does not read have the same limit.
const IDLE: u32 = 75;
/// The same over gRPC, whose clients keep connections for later calls.
const IDLE_GRPC: u32 = 900;

/// Limits of a listener's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections of one client; 0 for no limit.
    pub per_client: usize,
    /// Maximum time without a request, in seconds.
    pub idle: u32,
    /// Whether a connection with requests in progress may be closed for another client's.
    pub requests_are_endless: bool,
    /// Maximum number of TLS handshakes of all clients in a minute; 0 for no limit.
    pub handshakes: u32,
}

impl ListenerLimits {
    /// Returns the limits of a listener for HTTP/1, or for TLS with HTTP/2 as well.
    pub fn http(connections: usize, per_client: usize) -> Self {
        Self { connections, per_client, idle: IDLE, requests_are_endless: false, handshakes: 0 }
    }

    /// Returns the limits for gRPC. A client may have a quarter of the connections.
    pub fn grpc(connections: usize) -> Self {
        Self {
            connections,
            per_client: connections.div_ceil(4),
            idle: IDLE_GRPC,
            requests_are_endless: true,
            handshakes: GRPC_HANDSHAKES_PER_MINUTE,
        }
    }
}

/// The open connections of a listener, on all its threads.
pub struct Connections {
    /// For the log.
    name: &'static str,
    pub(crate) limits: ListenerLimits,
    /// Whether a peer is exempt from the limits for each client, as a proxy for many clients is.
    pub is_exempt: Box<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// The rates of handshakes if connections begin with one: of each client, and of all.
    handshakes: Option<(Rate, Rate)>,
    /// Counts refused connections.
    pub refused: Counter,
    clock: Arc<Clock>,
    /// One permit for each descriptor that connections may have.
    descriptors: Arc<Semaphore>,
    table: Mutex<Table>,
    full: Seldom,
    failed: Seldom,
}

/// State of a listener that its connections read at every request.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    pub(crate) seconds: AtomicU32,
    is_closing: AtomicBool,
}

/// The client of a connection, which exempt peers have none of, and the connection's number.
type Place = (Option<IpAddr>, u64);

#[derive(Default)]
struct Table {
    next: u64,
    connections: BTreeMap<Place, Connection>,
}

impl Connections {
    /// Creates the table of a listener without connections. The name is for the log.
    pub fn new(name: &'static str, limits: ListenerLimits) -> Self {
        Self {
            name,
            limits,
            is_exempt: Box::new(|_| false),
            handshakes: None,
            refused: Counter::noop(),
            clock: Arc::default(),
            descriptors: Arc::new(Semaphore::new(limits.connections.saturating_add(CLOSING))),
            table: Mutex::default(),
            full: Seldom::default(),
            failed: Seldom::default(),
        }
    }

    /// Limits the handshakes of each client and of all, if connections begin with one.
    #[must_use]
    pub fn with_handshakes(mut self, has_tls: bool) -> Self {
        self.handshakes =
            has_tls.then(|| (Rate::new(HANDSHAKES_PER_MINUTE), Rate::new(self.limits.handshakes)));
        self
    }

    /// Starts a task that closes overdue connections, for as long as the result is kept.
    pub fn enforce_timeouts(self: &Arc<Self>) -> AbortOnDropHandle<()> {
        let connections = Arc::clone(self);
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                sleep(TICK).await;
                connections.tick();
            }
        }))
    }

    /// Waits for the next connection that is admitted. No connection is lost if the future is
    /// dropped, unless other threads take the last descriptors meanwhile.
    pub async fn accept(self: &Arc<Self>, listener: &TcpListener) -> (TcpStream, OpenConnection) {
        loop {
            // Taken only with a connection in hand: each thread of a listener would hold one.
            let _ = self.descriptors.acquire().await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    // A yield would lose the connection if the future is dropped then.
                    let descriptor = unconstrained(Arc::clone(&self.descriptors).acquire_owned()).await.ok();
                    if let Some(open) = self.admit(address.ip(), descriptor) {
                        // A response is several small writes. Without this the last one waits for
                        // the client's delayed acknowledgement, 40 ms.
                        let _ = stream.set_nodelay(true);
                        return (stream, open);
                    }
                    self.refused.increment(1);
                }
                Err(error) => {
                    // No descriptor is left, most likely, and a retry at once would find none.
                    if let Some(times) = self.failed.happened() {
                        tracing::warn!(%error, times, listener = self.name, "accept a connection");
                    }
                    self.close_idlest();
                    sleep(NO_DESCRIPTOR).await;
                }
            }
        }
    }

    /// Admits a connection of a peer, if necessary in place of idle ones. Returns `None` if none of
    /// those that it could replace may be closed.
    pub fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        descriptor: Option<OwnedSemaphorePermit>,
    ) -> Option<OpenConnection> {
        let is_exempt = (self.is_exempt)(peer);
        if let Some((of_client, of_all)) = &self.handshakes
            && ((!is_exempt && of_client.spend(network(peer)).is_err()) || of_all.spend(()).is_err())
        {
            return None;
        }
        let client = (self.limits.per_client > 0 && !is_exempt).then(|| network(peer));
        let (place, connection) = self.enter(client, peer)?;
        Some(OpenConnection { connections: Arc::clone(self), connection, place, _descriptor: descriptor })
    }

    fn enter(&self, client: Option<IpAddr>, peer: IpAddr) -> Option<(Place, Connection)> {
        let (mut table, mut closed) = (self.table(), Vec::new());
        let has_its_share = |client| table.connections.range(of(client)).count() >= self.limits.per_client;
        let own = client.filter(|client| has_its_share(*client));
        if own.is_some() || table.connections.len() >= self.limits.connections {
            closed = table.take_idlest(own, self.now(), own.is_none() && self.limits.requests_are_endless);
            if let Some(times) = self.full.happened() {
                let (closed, listener) = (closed.len(), self.name);
                tracing::warn!(times, closed, listener, "connections reach their limit");
            }
            if closed.is_empty() {
                return None;
            }
        }
        let place = (client, table.next);
        let connection = Connection::new(peer, Arc::clone(&self.clock));
        table.next += 1;
        table.connections.insert(place, connection.clone());
        drop(table);
        closed.iter().for_each(Connection::close);
        Some((place, connection))
    }

    /// Closes the idlest connections, as when no descriptor is left. Returns their number.
    pub(crate) fn close_idlest(&self) -> usize {
        let closed = self.table().take_idlest(None, self.now(), self.limits.requests_are_endless);
        closed.iter().for_each(Connection::close);
        closed.len()
    }

    /// Moves the clock by a second, and closes the connections that are overdue by it.
    fn tick(&self) {
        let now = self.clock.seconds.fetch_add(1, Ordering::Relaxed) + 1;
        let mut closed = Vec::new();
        self.table().connections.retain(|_, connection| {
            let is_overdue = connection.is_overdue(now, self.limits.idle);
            closed.extend(is_overdue.then(|| connection.clone()));
            !is_overdue
        });
        closed.iter().for_each(Connection::close);
    }

    /// Starts a graceful close: each connection finishes the request in progress and ends.
    pub fn close_gracefully(&self) {
        self.clock.is_closing.store(true, Ordering::Relaxed);
        self.table().connections.values().for_each(Connection::wake);
    }

    /// Returns whether a graceful close has started.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.clock.is_closing.load(Ordering::Relaxed)
    }

    fn now(&self) -> u32 {
        self.clock.seconds.load(Ordering::Relaxed)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no code panics while it holds this lock")
    }
}

/// Returns the places of a client.
fn of(client: IpAddr) -> RangeInclusive<Place> {
    (Some(client), 0)..=(Some(client), u64::MAX)
}

impl Table {
    /// Removes the idlest connections, of all or of one client: a part of them but at least one.
    /// Those with a request in progress come last, if they may be closed.
    fn take_idlest(&mut self, whose: Option<IpAddr>, now: u32, takes_busy: bool) -> Vec<Connection> {
        let row = |(place, one): (&Place, &Connection)| (one.idleness(now), place.1, *place);
        let mut resting: Vec<_> = match whose {
            None => self.connections.iter().map(row).collect(),
            Some(client) => self.connections.range(of(client)).map(row).collect(),
        };
        let part = (resting.len() / PART).max(1);
        resting.retain(|(idleness, ..)| takes_busy || !idleness.is_busy);
        if resting.len() > part {
            resting.select_nth_unstable(part);
            resting.truncate(part);
        }
        resting.iter().filter_map(|(.., place)| self.connections.remove(place)).collect()
    }
}

/// A connection in the table of its listener. Dropping it makes room for another one.
pub struct OpenConnection {
    connections: Arc<Connections>,
    connection: Connection,
    place: Place,
    _descriptor: Option<OwnedSemaphorePermit>,
}

impl OpenConnection {
    /// Returns what the connection's task records of it.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // A connection that was closed to make room is removed already.
        self.connections.table().connections.remove(&self.place);
    }
}

#[cfg(test)]
mod tests;
