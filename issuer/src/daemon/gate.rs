//! Accepting connections within limits, for the listeners of gRPC and for the admin listener.
//!
//! 1. Of all connections there are at most so many, and of one client (IPv6: one /64) at most a share. A client past its share
//!    is refused. When all are taken the idlest makes room for the next, so that silent connections keep no other client out.
//! 2. Whoever has said nothing is idler than whoever has spoken. A small read, as the answer to a ping is one, is no sign of
//!    use: a client may not keep its place by answering pings.
//! 3. A connection that says too little in time is ended, and one that is unused for long. A server behind this needs no
//!    time-out for handshakes of its own.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{Stream, stream, task::AtomicWaker};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Interval, interval, sleep},
};
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::Seldom;

/// How often connections are looked at.
const TICK: Duration = Duration::from_secs(1);
/// The answer to a ping of HTTP/2 (RFC 9113, section 6.7): a read of no more is no sign of use.
const PING_BYTES: usize = 17;
/// How long to wait when the system has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

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
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        if let Some(guarded) = self.admit(stream, address.ip()) {
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

    fn admit(&self, stream: TcpStream, peer: IpAddr) -> Option<Guarded> {
        let client = (self.limits.per_client > 0 && !(self.is_exempt)(peer)).then(|| network(peer));
        let admitted = self.open.admit(client, &self.limits);
        if admitted.is_not_free()
            && let Some(times) = self.full.happened()
        {
            tracing::warn!(
                times,
                listener = self.name,
                "connections reach their limit: closed idle or new ones"
            );
        }
        let (Admitted::Free(pulse) | Admitted::InPlaceOfAnother(pulse)) = admitted else { return None };
        // An answer is several small writes: without this the last one waits for the client's delayed acknowledgement, 40 ms.
        let _ = stream.set_nodelay(true);
        Some(Guarded { stream, pulse, open: Arc::clone(&self.open), greeting: self.limits.greeting })
    }
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

/// One connection's state, written by its own task.
struct Pulse {
    id: u64,
    client: Option<IpAddr>,
    opened: Duration,
    /// Bytes read so far, as far as the greeting goes.
    greeted: AtomicU64,
    has_greeted: AtomicBool,
    /// Milliseconds after the gate's start.
    used_at: AtomicU64,
    is_cut: AtomicBool,
    reader: AtomicWaker,
}

impl Open {
    fn admit(&self, client: Option<IpAddr>, limits: &GateLimits) -> Admitted {
        let mut table = self.table();
        if let Some(client) = client
            && table.by_client.get(&client).is_some_and(|count| *count >= limits.per_client)
        {
            return Admitted::Refused;
        }
        let is_full = table.connections.len() >= limits.connections;
        if is_full && !table.cut_idlest() {
            return Admitted::Refused;
        }
        let now = self.since.elapsed();
        let pulse = Arc::new(Pulse {
            id: table.next,
            client,
            opened: now,
            greeted: AtomicU64::new(0),
            has_greeted: AtomicBool::new(false),
            used_at: AtomicU64::new(milliseconds(now)),
            is_cut: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        });
        table.next += 1;
        table.connections.insert(pulse.id, Arc::clone(&pulse));
        if let Some(client) = client {
            *table.by_client.entry(client).or_default() += 1;
        }
        if is_full { Admitted::InPlaceOfAnother(pulse) } else { Admitted::Free(pulse) }
    }

    fn end_idlest(&self) {
        self.table().cut_idlest();
    }

    fn end_overdue(&self, limits: &GateLimits) {
        let now = self.since.elapsed();
        let mut table = self.table();
        let is_overdue = |pulse: &&Arc<Pulse>| {
            let unused = milliseconds(now).saturating_sub(pulse.used_at.load(Ordering::Relaxed));
            let is_silent = !pulse.has_greeted.load(Ordering::Relaxed);
            (is_silent && now.saturating_sub(pulse.opened) > limits.greet_within)
                || unused > milliseconds(limits.idle)
        };
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
    /// Ends the connection that is least in use; whether there was one.
    fn cut_idlest(&mut self) -> bool {
        let idlest = self.connections.values().min_by_key(|pulse| {
            (pulse.has_greeted.load(Ordering::Relaxed), pulse.used_at.load(Ordering::Relaxed), pulse.id)
        });
        let Some(id) = idlest.map(|pulse| pulse.id) else { return false };
        self.cut(id);
        true
    }

    fn cut(&mut self, id: u64) {
        if let Some(pulse) = self.remove(id) {
            pulse.is_cut.store(true, Ordering::Release);
            pulse.reader.wake();
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

/// A connection that its gate may end.
pub struct Guarded {
    stream: TcpStream,
    pulse: Arc<Pulse>,
    open: Arc<Open>,
    greeting: usize,
}

impl Guarded {
    fn note_read(&self, count: usize) {
        let pulse = &*self.pulse;
        if !pulse.has_greeted.load(Ordering::Relaxed) {
            let sum = pulse.greeted.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
            if sum < self.greeting as u64 {
                return;
            }
            pulse.has_greeted.store(true, Ordering::Relaxed);
        } else if count <= PING_BYTES {
            return;
        }
        pulse.used_at.store(milliseconds(self.open.since.elapsed()), Ordering::Relaxed);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.open.table().remove(self.pulse.id);
    }
}

impl Connected for Guarded {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.pulse.reader.register(cx.waker());
        if self.pulse.is_cut.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.note_read(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
