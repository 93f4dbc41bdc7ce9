//! Connections that keep their thread waiting are ended by one look a second at all of them.
//!
//! hyper's own limit for a request's head is a timer for each request, which costs about as much as parsing it, and it ends idle
//! connections with the same limit. Here a connection notes where it stands, by a clock that ticks once a second.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::AbortHandle,
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
/// A request is being answered.
const BUSY: u8 = 2;
/// The same, and it still comes while its answer goes: whatever moves is a sign of life.
const STREAM: u8 = 3;
/// A part of an end that makes room, of all connections of a thread: to look for the idlest of them takes longer than to end it.
const PART: usize = 64;

/// Where a connection stands. Only its own thread writes and reads it.
#[derive(Debug, Default)]
struct Pulse {
    state: AtomicU8,
    since: AtomicU32,
    /// Whether anything was ever answered on it.
    is_used: AtomicBool,
    /// Wakes the connection's task.
    waker: OnceLock<Waker>,
}

/// One thread's connections and its clock.
#[derive(Debug, Default)]
pub(super) struct Ward {
    seconds: AtomicU32,
    closing: AtomicBool,
    connections: Mutex<Vec<(Arc<Pulse>, AbortHandle)>>,
}

impl Ward {
    /// Ends what has waited for too long, once a second; runs for as long as the thread.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            sleep(TICK).await;
            let now = self.seconds.fetch_add(1, Ordering::Relaxed) + 1;
            self.connections().retain(|(pulse, connection)| {
                if pulse.has_waited_too_long(now) {
                    connection.abort();
                }
                !connection.is_finished()
            });
        }
    }

    /// Ends the connections that are idlest, so that others find room: those first on which nothing was ever asked, and then those that
    /// have rested longest. One that is being answered stays. Says how many there were.
    pub(super) fn end_idlest(&self) -> usize {
        let mut connections = self.connections();
        let resting = |(place, (pulse, _)): (usize, &(Arc<Pulse>, AbortHandle))| {
            let rests = matches!(pulse.state.load(Ordering::Relaxed), IDLE | HEAD);
            let key = (pulse.is_used.load(Ordering::Relaxed), pulse.since.load(Ordering::Relaxed));
            rests.then_some((key, place))
        };
        let mut resting: Vec<_> = connections.iter().enumerate().filter_map(resting).collect();
        let count = (connections.len() / PART).max(1).min(resting.len());
        if count == 0 {
            return 0;
        }
        resting.select_nth_unstable(count - 1);
        let mut places: Vec<usize> = resting[..count].iter().map(|(_, place)| *place).collect();
        places.sort_unstable();
        // From behind, so that what is put into a place is none of those that are to go.
        for place in places.into_iter().rev() {
            connections.swap_remove(place).1.abort();
        }
        count
    }

    /// Lets every connection finish what it has begun, and end.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let wakers =
            self.connections().iter().filter_map(|(pulse, _)| pulse.waker.get().cloned()).collect::<Vec<_>>();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether connections are to end.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// A stream that is watched, once [`Ward::admit`] has its task.
    pub(super) fn attend<S>(self: &Arc<Self>, stream: S) -> Watched<S> {
        let pulse = Arc::new(Pulse::default());
        pulse.since.store(self.seconds.load(Ordering::Relaxed), Ordering::Relaxed);
        Watched { stream, unread: Vec::new(), pulse, ward: Arc::clone(self) }
    }

    /// Watches the task that serves a connection.
    pub(super) fn admit(&self, patient: Patient, connection: AbortHandle) {
        self.connections().push((patient.0, connection));
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(Arc<Pulse>, AbortHandle)>> {
        self.connections.lock().expect("no code panics while it holds this lock")
    }
}

impl Pulse {
    fn has_waited_too_long(&self, now: u32) -> bool {
        let waited = now.wrapping_sub(self.since.load(Ordering::Relaxed));
        match self.state.load(Ordering::Relaxed) {
            IDLE | STREAM => waited > IDLE_SECONDS,
            HEAD => waited > HEAD_SECONDS,
            _ => false,
        }
    }
}

/// A connection's name in its ward.
#[derive(Clone)]
pub(super) struct Patient(Arc<Pulse>);

impl Patient {
    /// How its task is woken when the ward closes. A task has one waker for its whole life.
    pub(super) fn is_woken_by(&self, waker: &Waker) {
        self.0.waker.get_or_init(|| waker.clone());
    }

    /// A request whose answer begins before its body has ended.
    pub(super) fn is_streamed(&self) {
        self.0.state.store(STREAM, Ordering::Relaxed);
    }

    /// The request is answered: what is written from here on is the answer.
    pub(super) fn note_answered(&self) {
        if self.0.state.load(Ordering::Relaxed) == BUSY {
            self.0.state.store(IDLE, Ordering::Relaxed);
        }
    }

    /// Only its refusal is waited for: it rests.
    pub(super) fn is_held_back(&self) {
        self.0.state.store(IDLE, Ordering::Relaxed);
    }

    /// A whole head has come: until it is answered the body's pace and the answer's deadline are the limits.
    pub(super) fn is_served(&self) {
        self.0.state.store(BUSY, Ordering::Relaxed);
    }
}

/// A stream whose reads and writes tell where its connection stands.
pub(super) struct Watched<S> {
    stream: S,
    /// What is read before anything else of the stream.
    unread: Vec<u8>,
    pulse: Arc<Pulse>,
    ward: Arc<Ward>,
}

impl<S> Watched<S> {
    pub(super) fn patient(&self) -> Patient {
        Patient(Arc::clone(&self.pulse))
    }

    /// Gives back what was read and is for the next reader: the beginning of a request.
    pub(super) fn unread(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.note(HEAD);
        }
        self.unread = bytes;
    }

    fn note(&self, state: u8) {
        if self.pulse.state.load(Ordering::Relaxed) != STREAM {
            self.pulse.state.store(state, Ordering::Relaxed);
        }
        self.pulse.since.store(self.ward.seconds.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
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
        let waits = matches!(self.pulse.state.load(Ordering::Relaxed), IDLE | STREAM);
        if buffer.filled().len() > before && waits {
            self.note(HEAD);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // What is written before there is an answer asks for the body (`100 Continue`), and is none.
        let is_asked = self.pulse.state.load(Ordering::Relaxed) == BUSY;
        self.note(if is_asked { BUSY } else { IDLE });
        self.pulse.is_used.store(true, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn half_a_head_is_waited_for_ten_seconds_and_an_idle_connection_for_more() {
        let ward = Arc::new(Ward::default());
        let watching = tokio::spawn(Arc::clone(&ward).watch());
        let (mut slow, near) = duplex(64);
        let (_silent, other) = duplex(64);
        let serve = |near| {
            let mut watched = ward.attend(near);
            let patient = watched.patient();
            let task = tokio::spawn(async move { while watched.read_u8().await.is_ok() {} });
            ward.admit(patient, task.abort_handle());
            task
        };
        let (half, idle) = (serve(near), serve(other));
        slow.write_all(b"GET").await.unwrap();
        sleep(Duration::from_secs(9)).await;
        assert!(!half.is_finished());
        slow.write_all(b" /").await.unwrap();
        sleep(Duration::from_secs(4)).await;
        assert!(half.is_finished(), "each byte does not give it more time");
        sleep(Duration::from_secs(50)).await;
        assert!(!idle.is_finished());
        sleep(Duration::from_secs(20)).await;
        assert!(idle.is_finished());
        watching.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_idlest_makes_room_and_silent_ones_before_those_that_were_used() {
        let ward = Arc::new(Ward::default());
        let watching = tokio::spawn(Arc::clone(&ward).watch());
        let serve = |is_used: bool| {
            let (far, near) = duplex(64);
            let mut watched = ward.attend(near);
            let patient = watched.patient();
            let task = tokio::spawn(async move {
                if is_used {
                    watched.write_all(b"an answer").await.unwrap();
                }
                let _ = watched.read_u8().await;
            });
            ward.admit(patient, task.abort_handle());
            (far, task)
        };
        let used = serve(true);
        sleep(Duration::from_secs(5)).await;
        let silent = serve(false);
        sleep(Duration::from_secs(2)).await;
        let later = serve(false);
        for (ended, others) in [(&silent, [&used, &later]), (&later, [&used, &used])] {
            assert_eq!(ward.end_idlest(), 1);
            sleep(Duration::from_millis(1)).await;
            assert!(ended.1.is_finished() && others.iter().all(|(_, task)| !task.is_finished()));
        }
        assert_eq!([ward.end_idlest(), ward.end_idlest()], [1, 0]);
        watching.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_is_read_again_and_counts_as_half_a_head() {
        let ward = Arc::new(Ward::default());
        let watching = tokio::spawn(Arc::clone(&ward).watch());
        let (_slow, near) = duplex(64);
        let mut watched = ward.attend(near);
        let patient = watched.patient();
        watched.write_all(b"an answer to what came before").await.unwrap();
        watched.unread(b"GE".to_vec());
        let mut read = [0; 2];
        assert_eq!(
            (watched.read(&mut read[..1]).await.unwrap(), watched.read(&mut read[1..]).await.unwrap()),
            (1, 1)
        );
        assert_eq!(&read, b"GE");
        let task = tokio::spawn(async move { watched.read_u8().await });
        ward.admit(patient, task.abort_handle());
        sleep(Duration::from_secs(15)).await;
        assert!(task.is_finished());
        watching.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_was_asked_for_is_no_late_head() {
        let ward = Arc::new(Ward::default());
        let watching = tokio::spawn(Arc::clone(&ward).watch());
        let (mut client, near) = duplex(64);
        let mut watched = ward.attend(near);
        let patient = watched.patient();
        let served = patient.clone();
        let task = tokio::spawn(async move {
            assert_eq!(watched.read_u8().await.unwrap(), b'H');
            served.is_served();
            watched.write_all(b"continue").await.unwrap();
            while watched.read_u8().await.unwrap() != b'.' {}
            served.note_answered();
            watched.write_all(b"answer").await.unwrap();
            while watched.read_u8().await.is_ok() {}
        });
        ward.admit(patient, task.abort_handle());
        client.write_all(b"H").await.unwrap();
        for _ in 0..10 {
            sleep(Duration::from_secs(9)).await;
            client.write_all(b"body").await.unwrap();
        }
        assert_eq!(ward.end_idlest(), 0, "it is no idle one either");
        client.write_all(b".").await.unwrap();
        sleep(Duration::from_secs(5)).await;
        client.write_all(b"half a head").await.unwrap();
        assert!(!task.is_finished());
        sleep(Duration::from_secs(15)).await;
        assert!(task.is_finished(), "the next request's head has to come in time");
        watching.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_comes_while_its_answer_goes_lives_for_as_long_as_anything_moves() {
        let ward = Arc::new(Ward::default());
        let watching = tokio::spawn(Arc::clone(&ward).watch());
        let (mut client, near) = duplex(64);
        let mut watched = ward.attend(near);
        let patient = watched.patient();
        patient.is_streamed();
        let task = tokio::spawn(async move {
            while watched.read_u8().await.is_ok() {
                watched.write_all(b"!").await.unwrap();
            }
        });
        ward.admit(patient, task.abort_handle());
        for _ in 0..5 {
            client.write_all(b"item").await.unwrap();
            sleep(Duration::from_secs(40)).await;
        }
        assert!(!task.is_finished());
        sleep(Duration::from_secs(60)).await;
        assert!(task.is_finished(), "nothing has moved");
        watching.abort();
    }
}
