//! The activity of a connection: from this its listener tells how idle it is, and whether it is
//! overdue ([`Connections`](crate::Connections)).
//!
//! 1. The connection's own task records it, by a clock that ticks once a second, and so without a
//!    lock.
//! 2. A request in progress makes its connection busy, except while the server waits for the
//!    client: to send the request's body, or to take the next piece of the answer. Only requests
//!    and pieces are signs of life then: bytes on a connection may be pings without end. Among
//!    connections with a request in progress, one that reads more than pings is less idle.
//! 3. Without a request, bytes that are read are the beginning of one, or of a handshake.

use std::{
    cmp::Reverse,
    future::poll_fn,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
    },
    task::Waker,
};

use tokio::{
    task::{AbortHandle, futures::TaskLocalFuture},
    task_local,
};

use crate::connections::Clock;

/// The time a client has to send the head of a request, or its part of a handshake, in seconds.
const HEAD_SECONDS: u32 = 10;

/// Length in bytes of the answer to an HTTP/2 ping (RFC 9113, section 6.7).
const PING_BYTES: usize = 17;

/// Between requests: no byte of the next one has arrived.
const IDLE: u8 = 0;
/// Between requests: a part of a head has arrived.
pub(crate) const HEAD: u8 = 1;
/// Before the first request: in a handshake, whose bytes say nothing of a request. It is that of
/// TLS, or the first bytes by which a client shows that it speaks HTTP/2.
const HANDSHAKE: u8 = 2;

/// The state of a connection. Only its own task writes it, but for the end.
#[derive(Debug)]
struct ConnectionState {
    peer: IpAddr,
    clock: Arc<Clock>,
    /// Its state while no request is in progress.
    between_requests: AtomicU8,
    since: AtomicU32,
    /// Whether a request was ever answered on it.
    is_used: AtomicBool,
    /// Whether requests share it (HTTP/2), so that its bytes say nothing of them.
    is_multiplexed: AtomicBool,
    /// The number of requests without an answer.
    unanswered: AtomicU32,
    /// The number of these that wait for a piece of their body.
    owing: AtomicU32,
    /// The number of answers that the client has not taken whole.
    answering: AtomicU32,
    /// Whether an answer that was asked for its next piece had none yet.
    is_waiting: AtomicBool,
    /// The waker of the connection's task, which has one for its whole life.
    waker: OnceLock<Waker>,
    is_closed: AtomicBool,
    task: Mutex<Option<AbortHandle>>,
}

/// The side that a connection waits for, and the step that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// For the server.
    Answer,
    /// For the client to send more of a body.
    Body,
    /// For the client to take more of an answer, or to send a request.
    Client,
    /// For the rest of a head.
    Head,
    /// For the rest of a handshake.
    Handshake,
}

task_local! {
    /// The connection whose request the current task answers.
    static CURRENT: Connection;
}

/// How idle a connection is, in the order in which connections are closed: the smallest value
/// first. A connection on which nothing was ever answered, or that owes the body of its request,
/// comes before one that was used. Among equals the one that has been idle for longer comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Idleness {
    pub(crate) is_busy: bool,
    pub(crate) is_used: bool,
    rested: Reverse<u32>,
}

/// A connection, as the task that serves it and its listener see it.
#[derive(Clone, Debug)]
pub struct Connection(Arc<ConnectionState>);

impl Connection {
    pub(crate) fn new(peer: IpAddr, clock: Arc<Clock>) -> Self {
        let since = clock.seconds.load(Ordering::Relaxed).into();
        Self(Arc::new(ConnectionState {
            peer,
            clock,
            since,
            between_requests: IDLE.into(),
            is_used: false.into(),
            is_multiplexed: false.into(),
            unanswered: 0.into(),
            owing: 0.into(),
            answering: 0.into(),
            is_waiting: false.into(),
            waker: OnceLock::new(),
            is_closed: false.into(),
            task: Mutex::default(),
        }))
    }

    /// Returns the address of the peer.
    pub fn peer(&self) -> IpAddr {
        self.0.peer
    }

    fn waits_for(&self) -> Waits {
        let state = &self.0;
        let count = |of: &AtomicU32| of.load(Ordering::Relaxed);
        let (unanswered, owing, answering) =
            (count(&state.unanswered), count(&state.owing), count(&state.answering));
        let has_no_piece = state.is_waiting.load(Ordering::Relaxed);
        if unanswered > owing || (answering > 0 && has_no_piece) {
            return Waits::Answer;
        }
        match (owing, answering, state.between_requests.load(Ordering::Relaxed)) {
            (1.., ..) => Waits::Body,
            (0, 1.., _) | (0, 0, IDLE) => Waits::Client,
            (0, 0, HEAD) => Waits::Head,
            (0, 0, _) => Waits::Handshake,
        }
    }

    pub(crate) fn idleness(&self, now: u32) -> Idleness {
        let (is_busy, is_used) = match self.waits_for() {
            Waits::Answer => (true, true),
            Waits::Body | Waits::Handshake => (false, false),
            Waits::Client | Waits::Head => (false, self.0.is_used.load(Ordering::Relaxed)),
        };
        // The connection's own thread may have recorded a later second meanwhile.
        let rested = Reverse(now.saturating_sub(self.0.since.load(Ordering::Relaxed)));
        Idleness { is_busy, is_used, rested }
    }

    pub(crate) fn is_overdue(&self, now: u32, idle_seconds: u32) -> bool {
        let waited = now.wrapping_sub(self.0.since.load(Ordering::Relaxed));
        match self.waits_for() {
            Waits::Client => waited > idle_seconds,
            Waits::Head | Waits::Handshake => waited > HEAD_SECONDS,
            // The body's pace and the answer's deadline are the only limits.
            Waits::Answer | Waits::Body => false,
        }
    }

    #[inline]
    pub(crate) fn note(&self, between_requests: u8) {
        self.0.between_requests.store(between_requests, Ordering::Relaxed);
        self.touch();
    }

    /// Notes a sign of life.
    #[inline]
    fn touch(&self) {
        self.0.since.store(self.0.clock.seconds.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Notes that so many bytes have arrived, which begin a request unless one is in progress.
    #[inline]
    pub(crate) fn note_read(&self, count: usize) {
        if self.is_between_requests() {
            if self.0.between_requests.load(Ordering::Relaxed) == IDLE {
                self.note(HEAD);
            }
        } else if count > PING_BYTES && self.0.unanswered.load(Ordering::Relaxed) > 0 {
            self.touch();
        }
    }

    /// Notes that bytes were written, which answer a request unless one is in progress.
    #[inline]
    pub(crate) fn note_written(&self) {
        if self.is_between_requests() && self.0.between_requests.load(Ordering::Relaxed) != HANDSHAKE {
            self.note(IDLE);
            self.mark_used();
        }
    }

    #[inline]
    fn is_between_requests(&self) -> bool {
        let none = |of: &AtomicU32| of.load(Ordering::Relaxed) == 0;
        none(&self.0.unanswered) && none(&self.0.answering) && !self.0.is_multiplexed.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_used(&self) {
        self.0.is_used.store(true, Ordering::Relaxed);
    }

    /// Stores the waker of the connection's task. Only the first call has an effect.
    #[inline]
    pub fn set_waker(&self, waker: &Waker) {
        self.0.waker.get_or_init(|| waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.0.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Registers the task that serves the connection, so that closing the connection ends it.
    /// Without one, the next read or write of the stream fails.
    pub fn set_task(&self, task: AbortHandle) {
        let mut known = self.task();
        if self.is_closed() {
            task.abort();
        }
        *known = Some(task);
    }

    /// Ends the connection, even if its client reads nothing: when its thread next polls the task.
    pub(crate) fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        if let Some(task) = &*self.task() {
            task.abort();
        }
        self.wake();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Acquire)
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.0.task.lock().expect("no code panics while it holds this lock")
    }

    /// Marks a connection that begins with a handshake, which has the time of a head.
    pub fn mark_handshake(&self) {
        self.note(HANDSHAKE);
    }

    /// Marks the end of a handshake: no byte of a request has arrived.
    pub fn mark_shaken(&self, is_multiplexed: bool) {
        self.0.is_multiplexed.store(is_multiplexed, Ordering::Relaxed);
        self.note(IDLE);
    }

    /// Marks a request that was answered as soon as it was read.
    pub fn mark_answered(&self) {
        self.mark_used();
        self.touch();
    }

    /// Marks a request whose head is complete. It is in progress until the result is dropped.
    #[must_use]
    pub fn mark_serving(&self) -> Serving {
        self.0.unanswered.fetch_add(1, Ordering::Relaxed);
        self.touch();
        Serving { connection: self.clone(), is_answered: false }
    }

    /// Runs the future that answers a request of this connection. Within it, [`from_client`]
    /// records its waits on this connection.
    pub fn scope<F: Future>(&self, answer: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), answer)
    }
}

/// Waits for the client: for a piece of a request's body, or until its refusal is due. During the
/// wait the connection may be closed to make room. Outside of [`Connection::scope`], as in a task
/// of its own, the wait is not recorded.
pub async fn from_client<T>(piece: impl Future<Output = T>) -> T {
    let (mut piece, mut owed) = (pin!(piece), None);
    poll_fn(|cx| {
        let polled = piece.as_mut().poll(cx);
        if polled.is_pending() && owed.is_none() {
            let begin = |connection: &Connection| {
                connection.0.owing.fetch_add(1, Ordering::Relaxed);
                BodyWait(connection.clone())
            };
            owed = CURRENT.try_with(begin).ok();
        }
        polled
    })
    .await
}

/// A guard for the wait for a piece of a body; the wait ends when it is dropped.
struct BodyWait(Connection);

impl Drop for BodyWait {
    fn drop(&mut self) {
        self.0.0.owing.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

/// A guard for a request that is being answered, and then for its answer.
pub struct Serving {
    connection: Connection,
    is_answered: bool,
}

impl Serving {
    /// Marks the request as answered. The answer is under way until the guard is dropped.
    #[must_use]
    pub fn begin_answer(mut self) -> Self {
        let state = &self.connection.0;
        self.connection.mark_used();
        state.unanswered.fetch_sub(1, Ordering::Relaxed);
        state.answering.fetch_add(1, Ordering::Relaxed);
        self.is_answered = true;
        self.note_piece();
        self
    }

    /// Notes that the client has room for a piece, and takes it.
    #[inline]
    pub fn note_piece(&self) {
        self.connection.0.is_waiting.store(false, Ordering::Relaxed);
        self.connection.touch();
    }

    /// Notes that the client has room for a piece that is not there yet.
    #[inline]
    pub fn note_wait(&self) {
        self.connection.0.is_waiting.store(true, Ordering::Relaxed);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let state = &self.connection.0;
        let count = if self.is_answered { &state.answering } else { &state.unanswered };
        count.fetch_sub(1, Ordering::Relaxed);
        state.is_waiting.store(false, Ordering::Relaxed);
        self.connection.note(IDLE);
    }
}

#[cfg(test)]
mod tests;
