//! The fast path: redirects of cached links, answered from the bytes of a connection without hyper.
//! Almost every request is one.
//!
//! 1. hyper turns a request and its response into header maps, which are taken apart again at once,
//!    and moves a connection through protocol states that a redirect does not need. Here the parser
//!    that hyper uses too (httparse) reads the head in place, and the response is assembled from
//!    prepared bytes. That takes a tenth off a redirect's processor time, kernel included
//!    (`bench redirect` on 2026-11-22, median of five: 0.92 of nginx's; through hyper 1.02). Of the
//!    remaining time the kernel has four fifths.
//! 2. The fast path answers only requests that leave nothing to decide: GET or HEAD in HTTP/1.1
//!    without a body, for one host, on a connection that stays open, with a head that arrived in
//!    one piece, and for a link that the thread knows. At the first other request the connection
//!    goes to hyper permanently, together with every unanswered byte. So the rules of HTTP are kept
//!    in one place, which is hyper. A proxy that also sends other requests along its connections
//!    gets its redirects at hyper's price.
//! 3. All connections of a thread share its buffers. A connection that waits for its next request
//!    holds none.

mod head;

use std::{
    fmt::Write as _,
    future::poll_fn,
    io,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, ready},
};

use hyper::StatusCode;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::redirect::kept_for;
pub(super) use head::Received;

/// The number of bytes read at a time, and so the longest head that the fast path accepts.
const READ_BYTES: usize = 16 * 1024;
/// The number of response bytes after which no further request is answered, about a hundred usual
/// responses. The requests that a client pipelines beyond that go to hyper.
const ANSWERS_BYTES: usize = 16 * 1024;

/// How the fast path ended for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// hyper takes over the connection. Carries the bytes that were read but not answered; all
    /// later bytes are hyper's too.
    ToHyper(Vec<u8>),
    /// The client has closed its side, and everything it sent was answered.
    Ended,
}

/// A thread's buffers for requests and responses.
pub(super) struct Buffers {
    read: Box<[u8]>,
    answers: Answers,
}

impl Buffers {
    /// Allocates buffers for redirects of this status.
    pub(super) fn new(status: StatusCode) -> Self {
        let caching = kept_for(status).map_or_else(String::new, |kept| format!("cache-control: {kept}\r\n"));
        let head = format!("HTTP/1.1 {status}\r\n{caching}content-length: 0\r\nlocation: ");
        let answers = Answers { bytes: Vec::new(), head, tail: String::new(), second: i64::MIN };
        Self { read: vec![0; READ_BYTES].into(), answers }
    }
}

/// Responses that wait to be sent.
pub(super) struct Answers {
    bytes: Vec<u8>,
    /// The beginning of a response, up to the value of `location`.
    head: String,
    /// The rest of a response after its location. It has the date, so it holds for `second` only.
    tail: String,
    second: i64,
}

impl Answers {
    /// Appends a redirect to a location, which must be a valid header value.
    pub(super) fn redirect(&mut self, location: &[u8], now: Timestamp) {
        if self.second != now.as_second() {
            self.second = now.as_second();
            self.tail.clear();
            // Writing to a string does not fail.
            let _ = write!(self.tail, "\r\ndate: {}\r\n\r\n", now.strftime("%a, %d %b %Y %H:%M:%S GMT"));
        }
        self.bytes.extend_from_slice(self.head.as_bytes());
        self.bytes.extend_from_slice(location);
        self.bytes.extend_from_slice(self.tail.as_bytes());
    }
}

/// Answers a connection's requests for as long as `answer` can. `answer` appends a response and
/// returns true, or appends nothing and returns false. The function hands the connection to hyper
/// when `is_stopping` returns true.
///
/// # Errors
/// Returns an error if the connection fails.
pub(super) async fn serve<S>(
    stream: &mut S,
    buffers: &Mutex<Buffers>,
    mut is_stopping: impl FnMut(&mut Context<'_>) -> bool,
    mut answer: impl FnMut(&Received<'_>, &mut Answers) -> bool,
) -> io::Result<Left>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let turn = poll_fn(|cx| {
            if is_stopping(cx) {
                return Poll::Ready(Ok(Turn { unsent: Vec::new(), left: Some(Left::ToHyper(Vec::new())) }));
            }
            let mut buffers = buffers.lock().expect("no code panics while it holds this lock");
            take_turn(cx, Pin::new(&mut *stream), &mut buffers, &mut answer)
        });
        let Turn { unsent, left } = turn.await?;
        stream.write_all(&unsent).await?;
        if let Some(left) = left {
            return Ok(left);
        }
    }
}

/// The part of a turn that cannot be done without waiting.
struct Turn {
    /// Responses for which the connection has no room yet.
    unsent: Vec<u8>,
    /// The end of the fast path for the connection, once `unsent` is written; `None` if it
    /// continues.
    left: Option<Left>,
}

/// Reads and answers until no more bytes are available. Yields to other connections whenever a read
/// fills the whole buffer.
fn take_turn<S: AsyncRead + AsyncWrite>(
    cx: &mut Context<'_>,
    mut stream: Pin<&mut S>,
    Buffers { read, answers }: &mut Buffers,
    answer: &mut impl FnMut(&Received<'_>, &mut Answers) -> bool,
) -> Poll<io::Result<Turn>> {
    loop {
        let mut read = ReadBuf::new(read);
        ready!(stream.as_mut().poll_read(cx, &mut read))?;
        if read.filled().is_empty() {
            return Poll::Ready(Ok(Turn { unsent: Vec::new(), left: Some(Left::Ended) }));
        }
        answers.bytes.clear();
        let rest = answer_all(read.filled(), answers, answer);
        let mut unsent = &answers.bytes[..];
        if !unsent.is_empty()
            && let Poll::Ready(sent) = stream.as_mut().poll_write(cx, unsent)
        {
            unsent = &unsent[sent?..];
        }
        if !rest.is_empty() || !unsent.is_empty() {
            let left = (!rest.is_empty()).then(|| Left::ToHyper(rest.to_vec()));
            return Poll::Ready(Ok(Turn { unsent: unsent.to_vec(), left }));
        }
        if read.remaining() == 0 {
            // More bytes may be available, and the thread has other connections.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
    }
}

/// Answers requests in order. Returns the bytes from the first request on that it could not answer.
fn answer_all<'a>(
    mut bytes: &'a [u8],
    answers: &mut Answers,
    answer: &mut impl FnMut(&Received<'_>, &mut Answers) -> bool,
) -> &'a [u8] {
    while answers.bytes.len() < ANSWERS_BYTES
        && let Some((request, rest)) = head::receive(bytes)
        && answer(&request, answers)
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use proptest::prelude::*;
    use tokio::{
        io::{AsyncReadExt as _, duplex},
        time::sleep,
    };

    use super::*;
    use crate::http::pulse::Ward;

    /// Answers requests for links whose codes begin with a k.
    fn answer(request: &Received<'_>, answers: &mut Answers) -> bool {
        let Some(code) = request.asked.path.strip_prefix("/k") else { return false };
        answers.redirect(format!("https://to.example/{code}").as_bytes(), Timestamp::UNIX_EPOCH);
        true
    }

    fn get(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
    }

    fn redirect(number: usize) -> String {
        format!(
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: https://to.example/{number}\r\n\
             date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
        )
    }

    /// Sends pieces one by one through a connection with a buffer of `holds` bytes. Returns the
    /// responses, how the fast path ended, and the bytes that it did not read.
    async fn converse(pieces: Vec<Vec<u8>>, holds: usize) -> (String, Left, Vec<u8>) {
        let (near, mut far) = duplex(holds);
        let (mut from, mut to) = tokio::io::split(near);
        let sending = tokio::spawn(async move {
            for piece in pieces {
                to.write_all(&piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            to.shutdown().await.unwrap();
        });
        let reading = tokio::spawn(async move {
            let mut answered = String::new();
            from.read_to_string(&mut answered).await.unwrap();
            answered
        });
        let buffers = Mutex::new(Buffers::new(StatusCode::FOUND));
        let left = serve(&mut far, &buffers, |_| false, answer).await.unwrap();
        let mut unread = Vec::new();
        far.read_to_end(&mut unread).await.unwrap();
        drop(far);
        sending.await.unwrap();
        (reading.await.unwrap(), left, unread)
    }

    fn on_a_runtime<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    proptest! {
        #[test]
        fn every_byte_is_answered_here_in_its_turn_or_left_to_hyper(
            known in prop::collection::vec(prop::bool::weighted(0.9), 1..40),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            holds in 1_usize..4_000,
        ) {
            let path = |(number, is_known): (usize, &bool)| format!("/{}{number}", if *is_known { "k" } else { "u" });
            let requests: Vec<String> = known.iter().enumerate().map(|request| get(&path(request))).collect();
            let sent = requests.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(sent.len())).collect();
            cuts.extend([0, sent.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|ends| sent[ends[0]..ends[1]].to_vec()).collect();

            let (answered, left, unread) = on_a_runtime(converse(pieces, holds));

            let answers = answered.matches("HTTP/1.1").count();
            prop_assert_eq!(&answered, &(0..answers).map(redirect).collect::<String>());
            let rest = match left {
                Left::ToHyper(rest) => [rest, unread].concat(),
                Left::Ended => unread,
            };
            prop_assert_eq!(String::from_utf8(rest), Ok(requests[answers..].concat()));
            prop_assert!(known.iter().take(answers).all(|is_known| *is_known));
        }
    }

    #[test]
    fn what_comes_whole_and_is_known_is_answered_here() {
        let known: String = (0..100).map(|number| get(&format!("/k{number}"))).collect();
        let redirects: String = (0..100).map(redirect).collect();
        let together = |bytes: &str| on_a_runtime(converse(vec![bytes.into()], 1 << 20));
        assert_eq!(together(&known), (redirects.clone(), Left::Ended, Vec::new()));
        let (unknown, cut) = (get("/u"), &get("/k")[..9]);
        for rest in [&unknown, cut, "\x16\x03\x01"] {
            let left = Left::ToHyper(rest.as_bytes().to_vec());
            assert_eq!(together(&(known.clone() + rest)), (redirects.clone(), left, Vec::new()));
        }
        let singly = (0..3).map(|number| get(&format!("/k{number}")).into_bytes()).collect();
        let answered = (0..3).map(redirect).collect();
        assert_eq!(on_a_runtime(converse(singly, 1 << 20)), (answered, Left::Ended, Vec::new()));
    }

    #[test]
    fn answers_to_requests_that_come_together_are_bounded() {
        let requests = get("/k").repeat(300);
        let mut answers = Buffers::new(StatusCode::FOUND).answers;
        let mut with_long_urls = |_: &Received<'_>, answers: &mut Answers| {
            answers.redirect(&[b'x'; 2_000], Timestamp::UNIX_EPOCH);
            true
        };
        let rest = answer_all(requests.as_bytes(), &mut answers, &mut with_long_urls).len();
        assert!((ANSWERS_BYTES..ANSWERS_BYTES + 2_200).contains(&answers.bytes.len()));
        assert!(rest > 0 && rest.is_multiple_of(get("/k").len()));
    }

    /// A client that always has more to send.
    struct Endless {
        reads: usize,
    }

    impl AsyncRead for Endless {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.reads == 10 {
                // More reads than one turn may have: the test fails here instead of hanging.
                return Poll::Pending;
            }
            self.reads += 1;
            // Long heads with short responses. The last head ends where the buffer does.
            let head = "GET /k HTTP/1.1\r\nHost: a.example\r\nCookie: ";
            let request = format!("{head}{}\r\n\r\n", "c".repeat(1_024 - head.len() - 4));
            buffer.put_slice(request.repeat(buffer.remaining() / 1_024).as_bytes());
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn who_always_has_more_to_ask_for_leaves_the_thread_to_others_after_each_read() {
        let (mut endless, buffers) = (Endless { reads: 0 }, Mutex::new(Buffers::new(StatusCode::FOUND)));
        let mut serving = Box::pin(serve(&mut endless, &buffers, |_| false, answer));
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        assert!((0..3).all(|_| serving.as_mut().poll(cx).is_pending()));
        drop(serving);
        assert_eq!(endless.reads, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_no_answers_or_never_ends_a_head_is_not_waited_for() {
        let ward = Arc::new(Ward::default());
        let watching = tokio::spawn(Arc::clone(&ward).watch());
        let served = |far| {
            let mut stream = ward.attend(far);
            let patient = stream.patient();
            let task = tokio::spawn(async move {
                let buffers = Mutex::new(Buffers::new(StatusCode::FOUND));
                if let Ok(Left::ToHyper(unanswered)) = serve(&mut stream, &buffers, |_| false, answer).await {
                    stream.unread(unanswered);
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                }
            });
            ward.admit(patient, task.abort_handle());
            task
        };
        let ((mut deaf, one), (mut slow, other)) = (duplex(256), duplex(256));
        let (to_the_deaf, to_the_slow) = (served(one), served(other));
        deaf.write_all(get("/k").repeat(5).as_bytes()).await.unwrap();
        slow.write_all(format!("{}GET /k HT", get("/k")).as_bytes()).await.unwrap();
        sleep(Duration::from_secs(15)).await;
        assert!(to_the_slow.is_finished() && !to_the_deaf.is_finished());
        sleep(Duration::from_secs(65)).await;
        assert!(to_the_deaf.is_finished());
        watching.abort();
    }

    #[test]
    fn a_connection_that_is_to_stop_goes_to_hyper_before_it_is_read() {
        // The client is gone, so a read would return `Left::Ended`.
        let (_, mut far) = duplex(1_000);
        let buffers = Mutex::new(Buffers::new(StatusCode::FOUND));
        let left = on_a_runtime(serve(&mut far, &buffers, |_| true, answer)).unwrap();
        assert_eq!(left, Left::ToHyper(Vec::new()));
    }
}
