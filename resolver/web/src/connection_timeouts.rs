//! Connection timeouts: one scan a second ends connections that make no progress.
//!
//! hyper's own limit for the head of a request is a timer per request, which costs about as much as
//! parsing it, and it applies the same limit to idle connections. Here each connection records its
//! state, by a clock that ticks once a second.

use std::{
    cmp::Reverse,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::{AbortHandle, futures::TaskLocalFuture},
    task_local,
    time::sleep,
};

/// The time a client has to send the head of a request, in seconds.
const HEAD_SECONDS: u32 = 10;
/// The time a connection may stay open without a request, in seconds; nginx's default. A stream
/// without activity and an answer that the client does not read have the same limit.
const IDLE_SECONDS: u32 = 75;
const TICK: Duration = Duration::from_secs(1);

/// The state in which no byte of the next request has arrived.
const IDLE: u8 = 0;
/// The state in which a part of a head has arrived.
const HEAD: u8 = 1;
/// The state in which a request is being answered. It ends when the last piece of the answer has
/// been handed to the connection.
const BUSY: u8 = 2;
/// The state in which a request is being answered while its body still arrives. Activity in either
/// direction is a sign of life.
const STREAM: u8 = 3;
/// The state in which the server waits for the client to send the next piece of a body.
const BODY: u8 = 4;
/// The state in which the server waits for the client to read the answer.
const UNTAKEN: u8 = 5;
/// The state of a TLS handshake, whose bytes say nothing of a request.
const HANDSHAKE: u8 = 6;
/// The divisor for the number of connections that are ended at a time. Finding the idlest
/// connection takes longer than ending it, so a part of them is ended together.
const PART: usize = 64;

/// The state of a connection. Only its own thread writes it.
#[derive(Debug, Default)]
struct ConnectionState {
    activity: AtomicU8,
    since: AtomicU32,
    /// The connection's sequence number on its thread.
    number: AtomicU64,
    /// Whether a request was ever answered on it.
    is_used: AtomicBool,
    /// Whether requests share it (HTTP/2). Its state then follows from the next three fields, and
    /// its time from its requests alone: bytes on the connection may be pings without end.
    is_multiplexed: AtomicBool,
    /// The number of requests without an answer.
    unanswered: AtomicU32,
    /// The number of answers that the client has not taken whole.
    answering: AtomicU32,
    /// Whether an answer that was asked for its next piece had none yet.
    is_waiting: AtomicBool,
    /// The clock of the thread.
    clock: Arc<AtomicU32>,
    /// The waker of the connection's task.
    waker: OnceLock<Waker>,
}

task_local! {
    /// The connection whose request the current task answers.
    static CURRENT: Connection;
}

/// How idle a connection is, in the order in which connections are ended: the smallest value first.
/// A connection on which nothing was ever answered, or that owes the body of its request, comes
/// before one that was used. Among equals the one that has been idle for longer comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Idleness {
    is_used: bool,
    rested: Reverse<u32>,
}

/// Selects the connections to end when room is needed, on a thread or of a client: the idlest ones,
/// a sixty-fourth of all but at least one. A connection that is being answered stays, unless it
/// waits for its client. Otherwise requests whose bodies never arrive would take every slot.
#[must_use]
pub fn idlest<K: Copy + Ord>(connections: impl ExactSizeIterator<Item = (K, Option<Idleness>)>) -> Vec<K> {
    let part = (connections.len() / PART).max(1);
    let mut resting: Vec<(Idleness, K)> =
        connections.filter_map(|(key, idleness)| Some((idleness?, key))).collect();
    if resting.len() > part {
        resting.select_nth_unstable(part);
        resting.truncate(part);
    }
    resting.into_iter().map(|(_, key)| key).collect()
}

/// A handle with which other tasks judge how idle a connection is, and close it.
#[derive(Debug)]
pub struct ConnectionHandle {
    state: Arc<ConnectionState>,
    thread: Arc<ThreadConnections>,
    task: AbortHandle,
}

impl ConnectionHandle {
    /// Returns how idle the connection is, or `None` while it is being answered.
    #[must_use]
    pub fn idleness(&self) -> Option<Idleness> {
        self.state.idleness(self.thread.seconds.load(Ordering::Relaxed))
    }

    /// Ends the connection. Its thread drops it when it next polls the task.
    pub fn close(&self) {
        self.task.abort();
    }
}

/// The connections of one thread, and their clock.
#[derive(Debug, Default)]
pub struct ThreadConnections {
    seconds: Arc<AtomicU32>,
    closing: AtomicBool,
    /// The number of streams registered so far.
    tracked: AtomicU64,
    connections: Mutex<Vec<(Arc<ConnectionState>, AbortHandle)>>,
}

impl ThreadConnections {
    /// Ends connections that have exceeded their limits, once a second. Runs for as long as the
    /// thread.
    pub async fn enforce_timeouts(self: Arc<Self>) {
        loop {
            sleep(TICK).await;
            let now = self.seconds.fetch_add(1, Ordering::Relaxed) + 1;
            self.connections().retain(|(state, connection)| {
                if state.has_waited_too_long(now) {
                    connection.abort();
                }
                !connection.is_finished()
            });
        }
    }

    /// Ends the idlest connections to make room for others, and returns their number.
    pub fn close_idlest(&self) -> usize {
        let (now, mut connections) = (self.seconds.load(Ordering::Relaxed), self.connections());
        // Ended connections hold no slot that another could take.
        connections.retain(|(_, connection)| !connection.is_finished());
        // Among connections idle for the same number of seconds the oldest goes first: a new one
        // has not had the time to send its request.
        let idleness = |(place, (state, _)): (usize, &(Arc<ConnectionState>, AbortHandle))| {
            ((state.number.load(Ordering::Relaxed), place), state.idleness(now))
        };
        let idlest = idlest(connections.iter().enumerate().map(idleness));
        let mut places: Vec<usize> = idlest.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        // From the end, so that `swap_remove` never moves a connection that is still to be removed.
        for place in places.iter().rev() {
            connections.swap_remove(*place).1.abort();
        }
        places.len()
    }

    /// Starts a graceful close: each connection finishes the request under way and ends.
    pub fn close_gracefully(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let wakers =
            self.connections().iter().filter_map(|(state, _)| state.waker.get().cloned()).collect::<Vec<_>>();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns whether a graceful close has started.
    #[must_use]
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Wraps a stream so that its activity is recorded. The timeouts apply once
    /// [`ThreadConnections::register`] has received the connection's task.
    pub fn track<S>(self: &Arc<Self>, stream: S) -> TimedStream<S> {
        let clock = Arc::clone(&self.seconds);
        let state = Arc::new(ConnectionState { clock, ..ConnectionState::default() });
        state.since.store(self.seconds.load(Ordering::Relaxed), Ordering::Relaxed);
        state.number.store(self.tracked.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        TimedStream { stream, unread: Vec::new(), state, thread: Arc::clone(self) }
    }

    /// Registers the task that serves a connection, so that it can be ended.
    pub fn register(self: &Arc<Self>, connection: Connection, task: AbortHandle) -> ConnectionHandle {
        self.connections().push((Arc::clone(&connection.0), task.clone()));
        ConnectionHandle { state: connection.0, thread: Arc::clone(self), task }
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(Arc<ConnectionState>, AbortHandle)>> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

impl ConnectionState {
    fn activity(&self) -> u8 {
        let some = |count: &AtomicU32| count.load(Ordering::Relaxed) > 0;
        if !self.is_multiplexed.load(Ordering::Relaxed) {
            return self.activity.load(Ordering::Relaxed);
        }
        match (some(&self.unanswered), some(&self.answering)) {
            (true, _) => BUSY,
            (false, true) if self.is_waiting.load(Ordering::Relaxed) => BUSY,
            (false, true) => UNTAKEN,
            (false, false) => IDLE,
        }
    }

    /// Notes that a request of a shared connection has come on.
    fn touch(&self) {
        if self.is_multiplexed.load(Ordering::Relaxed) {
            self.since.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn idleness(&self, now: u32) -> Option<Idleness> {
        let is_used = match self.activity() {
            IDLE | HEAD | UNTAKEN => self.is_used.load(Ordering::Relaxed),
            BODY | HANDSHAKE => false,
            _ => return None,
        };
        // The connection's own thread may have recorded a later second meanwhile.
        let rested = Reverse(now.saturating_sub(self.since.load(Ordering::Relaxed)));
        Some(Idleness { is_used, rested })
    }

    fn has_waited_too_long(&self, now: u32) -> bool {
        let waited = now.wrapping_sub(self.since.load(Ordering::Relaxed));
        match self.activity() {
            IDLE | STREAM | UNTAKEN => waited > IDLE_SECONDS,
            HEAD | HANDSHAKE => waited > HEAD_SECONDS,
            _ => false,
        }
    }
}

/// The view of a connection that the task serving it has. The task records here what the connection
/// does.
#[derive(Clone)]
pub struct Connection(Arc<ConnectionState>);

impl Connection {
    /// Stores the waker of the connection's task, which a graceful close wakes. A task has one
    /// waker for its whole life, so only the first call has an effect.
    #[inline]
    pub fn set_waker(&self, waker: &Waker) {
        self.0.waker.get_or_init(|| waker.clone());
    }

    /// Marks a connection that begins with a handshake, which has the time of a head.
    pub fn mark_handshake(&self) {
        self.0.activity.store(HANDSHAKE, Ordering::Relaxed);
    }

    /// Marks the end of a handshake: no byte of a request has arrived.
    pub fn mark_shaken(&self, is_multiplexed: bool) {
        self.0.is_multiplexed.store(is_multiplexed, Ordering::Relaxed);
        self.0.activity.store(IDLE, Ordering::Relaxed);
        self.0.since.store(self.0.clock.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Marks a request that was answered as soon as it was read.
    pub fn mark_answered(&self) {
        self.0.is_used.store(true, Ordering::Relaxed);
        self.0.touch();
    }

    /// Marks a request whose answer begins before its body has ended.
    #[must_use]
    pub fn mark_streaming(&self) -> Serving {
        self.serve(STREAM)
    }

    /// Marks the connection as idle while a refusal is held back, so that it may be closed to make
    /// room.
    pub fn mark_held_back(&self) {
        // Of a shared connection, it is one request of many.
        self.0.activity.store(IDLE, Ordering::Relaxed);
    }

    /// Marks a request whose head is complete. Until it is answered, the body's pace and the
    /// answer's deadline are its only limits.
    #[must_use]
    pub fn mark_serving(&self) -> Serving {
        self.serve(BUSY)
    }

    fn serve(&self, activity: u8) -> Serving {
        self.0.unanswered.fetch_add(1, Ordering::Relaxed);
        self.0.activity.store(activity, Ordering::Relaxed);
        self.0.touch();
        Serving { connection: self.clone(), is_answered: false }
    }

    /// Runs the future that answers a request of this connection. Within it, [`from_client`]
    /// records its waits on this connection.
    pub fn scope<F: Future>(&self, answer: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), answer)
    }

    fn swap(&self, from: u8, to: u8) {
        if self.0.activity.load(Ordering::Relaxed) == from {
            self.0.activity.store(to, Ordering::Relaxed);
        }
    }
}

/// Waits for a piece of a request's body. During the wait the connection may be closed to make
/// room. Outside of [`Connection::scope`], as in a task of its own, the wait is not recorded.
pub async fn from_client<T>(piece: impl Future<Output = T>) -> T {
    let (mut piece, mut owed) = (pin!(piece), None);
    poll_fn(|cx| {
        let polled = piece.as_mut().poll(cx);
        if polled.is_pending() && owed.is_none() {
            owed = CURRENT.try_with(BodyWait::begin).ok();
        }
        polled
    })
    .await
}

/// A guard for the wait for a piece of a body; the wait ends when it is dropped.
struct BodyWait(Connection);

impl BodyWait {
    fn begin(connection: &Connection) -> Self {
        connection.swap(BUSY, BODY);
        Self(connection.clone())
    }
}

impl Drop for BodyWait {
    fn drop(&mut self) {
        self.0.swap(BODY, BUSY);
    }
}

/// A guard for a request that is being answered, and then for its answer. Between the pieces of an
/// answer the client waits for the server, so the connection does not count as idle.
pub struct Serving {
    connection: Connection,
    is_answered: bool,
}

impl Serving {
    /// Marks the request as answered. The answer is under way until the guard is dropped.
    #[must_use]
    pub fn begin_answer(mut self) -> Self {
        let state = &self.connection.0;
        state.is_used.store(true, Ordering::Relaxed);
        state.unanswered.fetch_sub(1, Ordering::Relaxed);
        state.answering.fetch_add(1, Ordering::Relaxed);
        self.is_answered = true;
        self.note_piece();
        self
    }

    /// Notes that the client has room for a piece, and takes it.
    #[inline]
    pub(crate) fn note_piece(&self) {
        self.connection.0.is_waiting.store(false, Ordering::Relaxed);
        self.connection.0.touch();
    }

    /// Notes that the client has room for a piece that is not there yet.
    #[inline]
    pub(crate) fn note_wait(&self) {
        self.connection.0.is_waiting.store(true, Ordering::Relaxed);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let state = &self.connection.0;
        let count = if self.is_answered { &state.answering } else { &state.unanswered };
        count.fetch_sub(1, Ordering::Relaxed);
        state.is_waiting.store(false, Ordering::Relaxed);
        state.touch();
        self.connection.swap(BUSY, IDLE);
        self.connection.swap(UNTAKEN, IDLE);
    }
}

/// A stream whose reads and writes update the state of its connection.
pub struct TimedStream<S> {
    stream: S,
    /// Bytes that are read before those of the stream.
    unread: Vec<u8>,
    state: Arc<ConnectionState>,
    thread: Arc<ThreadConnections>,
}

impl<S> TimedStream<S> {
    /// Returns the connection of this stream.
    #[must_use]
    pub fn connection(&self) -> Connection {
        Connection(Arc::clone(&self.state))
    }

    /// Puts back bytes that the next reader needs: the beginning of a request.
    pub fn unread(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.note(HEAD);
        }
        self.unread = bytes;
    }

    fn note(&self, state: u8) {
        if self.state.activity.load(Ordering::Relaxed) != STREAM {
            self.state.activity.store(state, Ordering::Relaxed);
        }
        self.state.since.store(self.thread.seconds.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let len = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..len]);
            self.unread.drain(..len);
            if self.unread.is_empty() {
                // Frees the allocation, which would otherwise last as long as the connection.
                self.unread = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before && !self.state.is_multiplexed.load(Ordering::Relaxed) {
            match self.state.activity.load(Ordering::Relaxed) {
                IDLE | STREAM => self.note(HEAD),
                // These bytes may be less than a piece of the body.
                BODY => self.note(BODY),
                _ => {}
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if self.state.is_multiplexed.load(Ordering::Relaxed) {
            return polled;
        }
        match (self.state.activity.load(Ordering::Relaxed), polled.is_pending()) {
            // hyper asks for the body (`100 Continue`).
            (BODY, _) => self.note(BODY),
            (BUSY, true) => self.note(UNTAKEN),
            // A failed retry is no sign of life, nor is the server's part of a handshake.
            (UNTAKEN, true) | (HANDSHAKE, _) => {}
            (BUSY | UNTAKEN, false) => self.note(BUSY),
            _ => {
                self.note(IDLE);
                self.state.is_used.store(true, Ordering::Relaxed);
            }
        }
        polled
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
