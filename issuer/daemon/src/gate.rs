//! Acceptance of connections within limits, for the gRPC listeners and the admin listener.
//!
//! 1. Connections are limited in total and for each client (IPv6: one /64). At either limit, the
//!    idlest connection is closed in favour of the next. So silent connections lock out neither
//!    other clients nor neighbours behind the same address. At a client's limit, a connection with
//!    a call in flight is never closed: otherwise a neighbour behind the same address could cut it.
//!    If all have one, the next connection is refused. At the total limit even a connection with
//!    calls can be closed: otherwise a few clients with endless calls would lock out all others.
//! 2. A connection without a call in flight is idler than one with calls, and one that has not sent
//!    its greeting is idler still. A small read, such as the answer to an HTTP/2 ping, is no sign
//!    of use: a client may not keep its slot by answering pings.
//! 3. A connection that is cut is closed at once, whether or not its client reads the data written
//!    to it. It keeps its descriptor until its task has run. So at most [`CLOSING`] connections may
//!    be in that state before the next is accepted: otherwise a burst would take the descriptors
//!    that the process reserves for itself.
//! 4. A connection that sends too little in time is cut, and so is one that is unused for long. A
//!    server behind a gate needs no handshake time-out of its own.

mod guarded;
mod secured;

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::{Stream, stream};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Interval, interval, sleep},
};

use super::Seldom;
use guarded::Pulse;
pub use guarded::{Guarded, Guest, UnderWay};
pub use secured::Secured;

/// Interval of the search for overdue connections.
const TICK: Duration = Duration::from_secs(1);
/// Back-off after a failed accept, as when the system has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
/// Maximum number of connections that are cut but not yet closed, in addition to those within the
/// limit.
const CLOSING: usize = 8;

/// Limits on the number of connections and on their idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum number of concurrent connections of one client; 0 for no limit.
    pub per_client: usize,
    /// Length in bytes of the greeting: the first bytes by which a client shows that it speaks the
    /// protocol.
    pub greeting: usize,
    /// Time limit for the greeting.
    pub greet_within: Duration,
    /// Maximum time that a connection may be unused.
    pub idle: Duration,
}

impl GateLimits {
    /// Returns the limits for gRPC. The greeting is the preface of HTTP/2 (RFC 9113, section 3.4),
    /// and a client may have a quarter of the connections.
    #[must_use]
    pub fn grpc(connections: usize) -> Self {
        let per_client = connections.div_ceil(4);
        let (greet_within, idle) = (Duration::from_secs(10), Duration::from_secs(900));
        Self { connections, per_client, greeting: 24, greet_within, idle }
    }

    /// Returns the limits for probes and scrapers. No client has a share, and a flood from one
    /// address must not lock them out either.
    #[must_use]
    pub fn admin(connections: usize) -> Self {
        let (greet_within, idle) = (Duration::from_secs(5), Duration::from_secs(300));
        Self { connections, per_client: 0, greeting: 1, greet_within, idle }
    }
}

/// Returns whether a peer is exempt from the limit for each client, as a proxy for many clients is.
pub type IsExempt = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// A listener that enforces [`GateLimits`].
pub struct Gate {
    listener: TcpListener,
    name: &'static str,
    limits: GateLimits,
    is_exempt: IsExempt,
    open: Arc<Open>,
    /// One permit for each descriptor that connections may have.
    places: Arc<Semaphore>,
    tick: Interval,
    full: Seldom,
    failed: Seldom,
}

impl Gate {
    /// Creates a gate in front of a listener; the name is for the log. Must be called on a runtime.
    #[must_use]
    pub fn new(listener: TcpListener, name: &'static str, limits: GateLimits) -> Self {
        Self {
            listener,
            name,
            limits,
            is_exempt: Arc::new(|_| false),
            open: Arc::new(Open { since: Instant::now(), table: Mutex::default() }),
            places: Arc::new(Semaphore::new(limits.connections.saturating_add(CLOSING))),
            tick: interval(TICK),
            full: Seldom::default(),
            failed: Seldom::default(),
        }
    }

    /// Exempts peers from the limit for each client; the total limit still applies.
    #[must_use]
    pub fn exempting(mut self, is_exempt: IsExempt) -> Self {
        self.is_exempt = is_exempt;
        self
    }

    /// Waits for the next admitted connection. Cancel safe: no connection is lost if the future is
    /// dropped.
    pub async fn accept(&mut self) -> Guarded {
        loop {
            tokio::select! {
                _ = self.tick.tick() => self.open.end_overdue(&self.limits),
                accepted = next(&self.listener, &self.places) => match accepted {
                    Ok((stream, peer, place)) => {
                        if let Some(guarded) = self.admit(stream, peer, place) {
                            return guarded;
                        }
                    }
                    Err(error) => {
                        if let Some(times) = self.failed.happened() {
                            tracing::warn!(%error, times, listener = self.name, "accept a connection");
                        }
                        self.open.end_idlest();
                        sleep(NO_DESCRIPTOR).await;
                    }
                },
            }
        }
    }

    /// Converts the gate into a stream of connections, for a server that takes one.
    pub fn into_stream(self) -> impl Stream<Item = io::Result<Guarded>> {
        stream::unfold(self, |mut gate| async move { Some((Ok(gate.accept().await), gate)) })
    }

    fn admit(&self, stream: TcpStream, peer: IpAddr, place: OwnedSemaphorePermit) -> Option<Guarded> {
        let client = (self.limits.per_client > 0 && !(self.is_exempt)(peer)).then(|| network(peer));
        let admitted = self.open.admit(client, &self.limits);
        if admitted.is_not_free()
            && let Some(times) = self.full.happened()
        {
            let name = self.name;
            tracing::warn!(times, listener = name, "connections reach their limit: the idlest make room");
        }
        let (Admitted::Free(pulse) | Admitted::InPlaceOfAnother(pulse)) = admitted else { return None };
        // A response is several small writes. Without this the last one waits for the client's
        // delayed acknowledgement, 40 ms.
        let _ = stream.set_nodelay(true);
        Some(Guarded::new((stream, place), pulse, Arc::clone(&self.open), self.limits.greeting))
    }
}

/// Waits for a free descriptor, and accepts the next connection with it.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    let (stream, address) = listener.accept().await?;
    Ok((stream, address.ip(), place))
}

/// The outcome of an admission.
enum Admitted {
    Free(Arc<Pulse>),
    InPlaceOfAnother(Arc<Pulse>),
    Refused,
}

impl Admitted {
    fn is_not_free(&self) -> bool {
        !matches!(self, Self::Free(_))
    }
}

/// The open connections.
struct Open {
    since: Instant,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    connections: HashMap<u64, Arc<Pulse>>,
    by_client: HashMap<IpAddr, usize>,
}

impl Open {
    fn admit(&self, client: Option<IpAddr>, limits: &GateLimits) -> Admitted {
        let (mut table, now) = (self.table(), self.since.elapsed());
        let has_its_share =
            |client: &IpAddr| table.by_client.get(client).is_some_and(|count| *count >= limits.per_client);
        let own = client.filter(has_its_share);
        let is_free = own.is_none() && table.connections.len() < limits.connections;
        if !is_free && !table.cut_idlest(own) {
            return Admitted::Refused;
        }
        let pulse = Arc::new(Pulse::new(table.next, client, now));
        table.next += 1;
        table.connections.insert(pulse.id, Arc::clone(&pulse));
        if let Some(client) = client {
            *table.by_client.entry(client).or_default() += 1;
        }
        if is_free { Admitted::Free(pulse) } else { Admitted::InPlaceOfAnother(pulse) }
    }

    fn end_idlest(&self) {
        self.table().cut_idlest(None);
    }

    fn end_overdue(&self, limits: &GateLimits) {
        let now = self.since.elapsed();
        let mut table = self.table();
        let is_overdue = |pulse: &&Arc<Pulse>| pulse.is_overdue(now, limits);
        let overdue: Vec<u64> = table.connections.values().filter(is_overdue).map(|pulse| pulse.id).collect();
        for id in overdue {
            table.cut(id);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no code panics while it holds this lock")
    }
}

impl Table {
    /// Cuts the idlest connection: of all, or of those of one client that have no call in flight.
    /// Returns whether there was one.
    fn cut_idlest(&mut self, client: Option<IpAddr>) -> bool {
        let may_go = |pulse: &&Arc<Pulse>| client.is_none() || (pulse.client == client && !pulse.has_calls());
        let idlest = self.connections.values().filter(may_go).min_by_key(|pulse| pulse.idleness());
        let Some(id) = idlest.map(|pulse| pulse.id) else { return false };
        self.cut(id);
        true
    }

    fn cut(&mut self, id: u64) {
        if let Some(pulse) = self.remove(id) {
            pulse.cut();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Pulse>> {
        let pulse = self.connections.remove(&id)?;
        if let Some(client) = pulse.client
            && let Some(count) = self.by_client.get_mut(&client)
        {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&client);
            }
        }
        Some(pulse)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the address that identifies a client: an IPv4 address, or an IPv6 network of 64 bits.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests;
