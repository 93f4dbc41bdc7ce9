//! Connections that keep their thread waiting are ended by one look a second at all of them.
//!
//! hyper's own limit for a request's head is a timer for each request, which costs about as much as parsing it, and it ends idle
//! connections with the same limit. Here a connection notes where it stands, by a clock that ticks once a second.

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

/// How long a client may take to send a request's head, in seconds.
const HEAD_SECONDS: u32 = 10;
/// How long a connection may stay open without a request, in seconds; nginx's default.
const IDLE_SECONDS: u32 = 75;
const TICK: Duration = Duration::from_secs(1);

/// Nothing of the next request has come.
const IDLE: u8 = 0;
/// A part of a head has come.
const HEAD: u8 = 1;
/// A request is being answered, until the last of its answer is on its way to the client.
const BUSY: u8 = 2;
/// The same, and it still comes while its answer goes: whatever moves is a sign of life.
const STREAM: u8 = 3;
/// A request is under way, and the client has not sent the next piece of its body.
const BODY: u8 = 4;
/// A request is being answered, and the client does not take what is there of the answer.
const UNTAKEN: u8 = 5;
/// A part of an end that makes room, of all connections of a thread: to look for the idlest of them takes longer than to end it.
const PART: usize = 64;

/// Where a connection stands. Only its own thread writes it.
#[derive(Debug, Default)]
struct ConnectionState {
    activity: AtomicU8,
    since: AtomicU32,
    /// Which of its thread's connections it is.
    number: AtomicU64,
    /// Whether anything was ever answered on it.
    is_used: AtomicBool,
    /// Wakes the connection's task.
    waker: OnceLock<Waker>,
}

task_local! {
    /// The connection whose request this task answers.
    static CURRENT: Connection;
}

/// How idle a connection is: the least is ended first. One on which nothing was ever answered is
/// idler than one that was used, and so is one that owes the body of its request. Then the one that
/// has rested for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Idleness {
    is_used: bool,
    rested: Reverse<u32>,
}

/// The one rule by which connections make room for others, of a thread and of a client: the idlest
/// of those that rest are ended, a part of all at a time. A connection that is being answered
/// stays, unless its client keeps us waiting: else requests whose bodies never come would take
/// every place.
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

/// A connection, as those see it who may close it.
#[derive(Debug)]
pub struct ConnectionHandle {
    state: Arc<ConnectionState>,
    thread: Arc<ThreadConnections>,
    task: AbortHandle,
}

impl ConnectionHandle {
    /// How idle it is, unless it is being answered.
    #[must_use]
    pub fn idleness(&self) -> Option<Idleness> {
        self.state.idleness(self.thread.seconds.load(Ordering::Relaxed))
    }

    /// Ends it. Its thread drops it with its next turn.
    pub fn close(&self) {
        self.task.abort();
    }
}

/// One thread's connections and its clock.
#[derive(Debug, Default)]
pub struct ThreadConnections {
    seconds: AtomicU32,
    closing: AtomicBool,
    /// How many streams it has had.
    tracked: AtomicU64,
    connections: Mutex<Vec<(Arc<ConnectionState>, AbortHandle)>>,
}

impl ThreadConnections {
    /// Ends what has waited for too long, once a second; runs for as long as the thread.
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

    /// Ends the idlest connections, so that others find room; how many there were.
    pub fn close_idlest(&self) -> usize {
        let (now, mut connections) = (self.seconds.load(Ordering::Relaxed), self.connections());
        // Those that have ended hold no place that could be given to others.
        connections.retain(|(_, connection)| !connection.is_finished());
        // Of those that have rested for as many seconds, the ones that came first: a new one has not
        // had the time to send its request.
        let idleness = |(place, (state, _)): (usize, &(Arc<ConnectionState>, AbortHandle))| {
            ((state.number.load(Ordering::Relaxed), place), state.idleness(now))
        };
        let idlest = idlest(connections.iter().enumerate().map(idleness));
        let mut places: Vec<usize> = idlest.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        // From behind, so that what is put into a place is none of those that are to go.
        for place in places.iter().rev() {
            connections.swap_remove(*place).1.abort();
        }
        places.len()
    }

    /// Lets every connection finish what it has begun, and end.
    pub fn close_gracefully(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let wakers =
            self.connections().iter().filter_map(|(state, _)| state.waker.get().cloned()).collect::<Vec<_>>();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether connections are to end.
    #[must_use]
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Makes a stream whose connection is watched, once [`ThreadConnections::register`] has its task.
    pub fn track<S>(self: &Arc<Self>, stream: S) -> TimedStream<S> {
        let state = Arc::new(ConnectionState::default());
        state.since.store(self.seconds.load(Ordering::Relaxed), Ordering::Relaxed);
        state.number.store(self.tracked.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        TimedStream { stream, unread: Vec::new(), state, thread: Arc::clone(self) }
    }

    /// Watches the task that serves a connection.
    pub fn register(self: &Arc<Self>, connection: Connection, task: AbortHandle) -> ConnectionHandle {
        self.connections().push((Arc::clone(&connection.0), task.clone()));
        ConnectionHandle { state: connection.0, thread: Arc::clone(self), task }
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(Arc<ConnectionState>, AbortHandle)>> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

impl ConnectionState {
    fn idleness(&self, now: u32) -> Option<Idleness> {
        let is_used = match self.activity.load(Ordering::Relaxed) {
            IDLE | HEAD | UNTAKEN => self.is_used.load(Ordering::Relaxed),
            BODY => false,
            _ => return None,
        };
        // Its own thread may have noted a later second meanwhile.
        let rested = Reverse(now.saturating_sub(self.since.load(Ordering::Relaxed)));
        Some(Idleness { is_used, rested })
    }

    fn has_waited_too_long(&self, now: u32) -> bool {
        let waited = now.wrapping_sub(self.since.load(Ordering::Relaxed));
        match self.activity.load(Ordering::Relaxed) {
            IDLE | STREAM | UNTAKEN => waited > IDLE_SECONDS,
            HEAD => waited > HEAD_SECONDS,
            _ => false,
        }
    }
}

/// A connection, as the task that serves it sees it. That task says here what the connection does.
#[derive(Clone)]
pub struct Connection(Arc<ConnectionState>);

impl Connection {
    /// Notes how its task is woken when the thread closes. A task has one waker for its whole life.
    #[inline]
    pub fn set_waker(&self, waker: &Waker) {
        self.0.waker.get_or_init(|| waker.clone());
    }

    /// Notes a request whose answer begins before its body has ended.
    pub fn mark_streaming(&self) {
        self.0.activity.store(STREAM, Ordering::Relaxed);
    }

    /// Notes that the request has an answer, which goes to the client until the guard is dropped.
    #[must_use]
    pub fn begin_answer(&self) -> AnswerGuard {
        self.0.is_used.store(true, Ordering::Relaxed);
        AnswerGuard(self.clone())
    }

    /// Notes that only its refusal is waited for: it rests.
    pub fn mark_held_back(&self) {
        self.0.activity.store(IDLE, Ordering::Relaxed);
    }

    /// Notes that a whole head has come: until it is answered, the body's pace and the answer's
    /// deadline are the limits.
    pub fn mark_serving(&self) {
        self.0.activity.store(BUSY, Ordering::Relaxed);
    }

    /// Answers a request of this connection, so that [`from_client`] knows whose client it waits
    /// for.
    pub fn scope<F: Future>(&self, answer: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), answer)
    }

    fn swap(&self, from: u8, to: u8) {
        if self.0.activity.load(Ordering::Relaxed) == from {
            self.0.activity.store(to, Ordering::Relaxed);
        }
    }
}

/// Waits for a piece of a request's body. Meanwhile the connection is one of those that make room.
/// Outside of [`Connection::scope`], as in a task of its own, it only waits.
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

/// A piece of a body that is waited for, until this is dropped.
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

/// An answer under way. Between its pieces the client waits for us, so its connection does not
/// rest.
pub struct AnswerGuard(Connection);

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        self.0.swap(BUSY, IDLE);
        self.0.swap(UNTAKEN, IDLE);
    }
}

/// A stream whose reads and writes tell where its connection stands.
pub struct TimedStream<S> {
    stream: S,
    /// What is read before anything else of the stream.
    unread: Vec<u8>,
    state: Arc<ConnectionState>,
    thread: Arc<ThreadConnections>,
}

impl<S> TimedStream<S> {
    /// The connection of this stream.
    #[must_use]
    pub fn connection(&self) -> Connection {
        Connection(Arc::clone(&self.state))
    }

    /// Gives back what was read and is for the next reader: the beginning of a request.
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
                // Not to be kept for as long as the connection is.
                self.unread = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            match self.state.activity.load(Ordering::Relaxed) {
                IDLE | STREAM => self.note(HEAD),
                // These bytes may be less than a piece.
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
        match (self.state.activity.load(Ordering::Relaxed), polled.is_pending()) {
            // Asks for the body (`100 Continue`).
            (BODY, _) => self.note(BODY),
            (BUSY, true) => self.note(UNTAKEN),
            // To try again is no sign of life.
            (UNTAKEN, true) => {}
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
