//! A connection that its gate may cut, and the state that the gate keeps of it.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use tls::Identity;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
};
use tonic::transport::server::Connected;

use super::{GateLimits, Open, milliseconds};

/// Length in bytes of the answer to an HTTP/2 ping (RFC 9113, section 6.7). A read of at most this
/// length is no sign of use.
pub(super) const PING_BYTES: usize = 17;

/// The activity of one connection, written by its own task and its calls.
pub(super) struct Pulse {
    pub(super) id: u64,
    pub(super) client: Option<IpAddr>,
    opened: Duration,
    /// Bytes read so far; counted until the greeting is complete.
    greeted: AtomicU64,
    pub(super) has_greeted: AtomicBool,
    /// Time of the last use, in milliseconds since the gate's start.
    pub(super) used_at: AtomicU64,
    calls: AtomicU64,
    is_cut: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Pulse {
    pub(super) fn new(id: u64, client: Option<IpAddr>, now: Duration) -> Self {
        Self {
            id,
            client,
            opened: now,
            greeted: AtomicU64::new(0),
            has_greeted: AtomicBool::new(false),
            used_at: AtomicU64::new(milliseconds(now)),
            calls: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
        }
    }

    /// Returns a sort key; the smallest belongs to the idlest connection.
    pub(super) fn idleness(&self) -> impl Ord + use<> {
        (
            self.has_calls(),
            self.has_greeted.load(Ordering::Relaxed),
            self.used_at.load(Ordering::Relaxed),
            self.id,
        )
    }

    pub(super) fn call(self: &Arc<Self>) -> UnderWay {
        self.calls.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Returns whether a call is in flight.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    pub(super) fn is_overdue(&self, now: Duration, limits: &GateLimits) -> bool {
        let unused = milliseconds(now).saturating_sub(self.used_at.load(Ordering::Relaxed));
        let is_silent = !self.has_greeted.load(Ordering::Relaxed);
        (is_silent && now.saturating_sub(self.opened) > limits.greet_within)
            || unused > milliseconds(limits.idle)
    }

    /// Makes the connection's task end it, even while the task waits for a read or a write.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.reader.wake();
        self.writer.wake();
    }

    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }
}

/// Handle to a connection for the calls on it, found in their request extensions.
#[derive(Clone)]
pub struct Guest {
    peer: Option<IpAddr>,
    pulse: Arc<Pulse>,
    /// Whom the client's certificate names, if it had to show one.
    pub(super) identity: Option<Identity>,
}

impl Guest {
    /// Returns the address of the connection's peer; `None` if the system did not tell it.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// Returns whom the client's certificate names; `None` if it did not have to show one.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Records a call in flight until the returned guard is dropped.
    #[must_use]
    pub fn call(&self) -> UnderWay {
        self.pulse.call()
    }
}

/// A guard that counts a call in flight on its connection.
pub struct UnderWay(Arc<Pulse>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An accepted connection that its gate may cut.
pub struct Guarded {
    stream: TcpStream,
    /// Released after the stream above is closed: fields are dropped in declaration order.
    _place: OwnedSemaphorePermit,
    pub(super) pulse: Arc<Pulse>,
    open: Arc<Open>,
    greeting: usize,
    /// Whether the bytes of the socket are those of the protocol. With TLS they are counted after
    /// it.
    pub(super) is_plain: bool,
    /// Whether the last write is pending because the client does not read.
    is_blocked: bool,
}

impl Guarded {
    pub(super) fn new(
        (stream, place): (TcpStream, OwnedSemaphorePermit),
        pulse: Arc<Pulse>,
        open: Arc<Open>,
        greeting: usize,
    ) -> Self {
        Self { stream, _place: place, pulse, open, greeting, is_plain: true, is_blocked: false }
    }

    pub(super) fn note_read(&self, count: usize) {
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

    /// Writes unless the connection is cut. A cut also ends a pending write.
    fn poll_uncut(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.pulse.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let written = write(Pin::new(&mut self.stream), cx);
        self.is_blocked = written.is_pending();
        if self.is_blocked {
            self.pulse.writer.register(cx.waker());
            // The connection may have been cut before the waker was registered.
            if self.pulse.is_cut() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        written
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.open.table().remove(self.pulse.id);
        if self.is_blocked && self.pulse.is_cut() {
            // Without this the kernel keeps offering the client the data that it does not read.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl Connected for Guarded {
    type ConnectInfo = Guest;

    fn connect_info(&self) -> Guest {
        let peer = self.stream.peer_addr().ok().map(|address| address.ip());
        Guest { peer, pulse: Arc::clone(&self.pulse), identity: None }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.pulse.reader.register(cx.waker());
        if self.pulse.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.is_plain {
            self.note_read(buffer.filled().len() - before);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_uncut(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_uncut(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
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
