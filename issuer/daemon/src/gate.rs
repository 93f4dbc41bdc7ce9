//! Accepting connections within limits, for the listeners of gRPC and for the admin listener.
//!
//! 1. Of all connections there are at most so many, and of one client (IPv6: one /64) at most a
//!    share. Where either is taken the idlest of them makes room for the next: silent connections
//!    keep out neither other clients nor the neighbours behind the same address. Of a client's own,
//!    one with a call under way stays, and the next is refused: else a neighbour behind the same
//!    address could cut it. Of all, also such a one makes room: else a few clients with calls that
//!    never end would keep out all others.
//! 2. A connection without a call under way is idler than one with calls, and one that has said
//!    nothing is idler still. A small read, as the answer to a ping is one, is no sign of use: a
//!    client may not keep its place by answering pings.
//! 3. A connection that is ended is closed at once, whether or not its client takes what is written
//!    to it. It keeps its descriptor until its task has run, so at most [`CLOSING`] may be in that
//!    state before the next is accepted: else a burst would take the descriptors that the process
//!    keeps for itself.
//! 4. A connection that says too little in time is ended, and one that is unused for long. A server
//!    behind this needs no time-out for handshakes of its own.

mod guarded;

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

/// How often connections are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How long to wait when the system has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
/// How many connections may be ended but not yet closed, beside those within the limit.
const CLOSING: usize = 8;

/// How many connections there may be, and how long they may do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Of one client; 0 for any number.
    pub per_client: usize,
    /// Bytes with which a client says that it speaks the protocol.
    pub greeting: usize,
    /// How long it may take for them.
    pub greet_within: Duration,
    /// How long a connection may be unused.
    pub idle: Duration,
}

impl GateLimits {
    /// For gRPC: the greeting is the preface of HTTP/2 (RFC 9113, section 3.4).
    #[must_use]
    pub fn grpc(connections: usize) -> Self {
        let per_client = connections.div_ceil(4);
        let (greet_within, idle) = (Duration::from_secs(10), Duration::from_secs(900));
        Self { connections, per_client, greeting: 24, greet_within, idle }
    }

    /// For probes and scrapers, which a flood from one address must not keep out either.
    #[must_use]
    pub fn admin(connections: usize) -> Self {
        let (greet_within, idle) = (Duration::from_secs(5), Duration::from_secs(300));
        Self { connections, per_client: 0, greeting: 1, greet_within, idle }
    }
}

/// Whether a peer may have any number of connections, as a proxy may that speaks for many clients.
pub type IsExempt = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// A listener that keeps limits.
pub struct Gate {
    listener: TcpListener,
    name: &'static str,
    limits: GateLimits,
    is_exempt: IsExempt,
    open: Arc<Open>,
    /// One for each descriptor that connections may have.
    places: Arc<Semaphore>,
    tick: Interval,
    full: Seldom,
    failed: Seldom,
}

impl Gate {
    /// A gate in front of a listener; the name is for the log. Must be called on a runtime.
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

    /// Lets some peers have any number of connections of all there are.
    #[must_use]
    pub fn exempting(mut self, is_exempt: IsExempt) -> Self {
        self.is_exempt = is_exempt;
        self
    }

    /// The next connection. May be dropped and called again: no connection is lost.
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

    /// The connections as a stream, for a server that takes one.
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
        // An answer is several small writes: without this the last one waits for the client's delayed acknowledgement, 40 ms.
        let _ = stream.set_nodelay(true);
        Some(Guarded::new((stream, place), pulse, Arc::clone(&self.open), self.limits.greeting))
    }
}

/// The next connection and its place, once there is one.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    let (stream, address) = listener.accept().await?;
    Ok((stream, address.ip(), place))
}

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

/// The connections that are open.
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
    /// Ends the idlest connection, of all or of those of one client without a call; whether there
    /// was one.
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

/// What counts as one client: an IPv4 address, or an IPv6 network of 64 bits.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests;
