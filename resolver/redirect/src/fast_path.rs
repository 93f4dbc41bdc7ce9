//! The fast path: redirects of known links, answered from the raw bytes of a connection without
//! hyper. Almost every request takes it.
//!
//! 1. **It answers** a run of HTTP/1.1 GET or HEAD requests for links that the caller knows. Each
//!    has no body, exactly one `Host`, at most one of each other header on which its client or
//!    target may depend, and no header that decides what becomes of the connection. Its head
//!    arrives in one read.
//! 2. **It hands the connection over for good** ([`Ending::HandOver`]) at the first request of any
//!    other kind, with every byte that it has not answered: an incomplete head, another method or
//!    version, a body, `Connection: close`, a link that the caller does not know. It also does so
//!    once the caller stops, and when the responses to requests that came at once fill the buffer.
//!    On a connection into which a proxy mixes other requests, a redirect costs as much as on a
//!    full HTTP server.
//! 3. **It never** refuses a request, reads a body, or waits for anything but the connection. It
//!    allocates nothing for a request whose response the connection takes at once. hyper alone
//!    enforces the rules of HTTP, so that they are in one place.
//! 4. All connections of a thread share its [`Buffers`], so a connection that waits for its next
//!    request holds none.
//!
//! Through hyper, a request and its response become maps of headers that are taken apart again at
//! once, and a connection passes through protocol states that a redirect does not need. Here
//! httparse, the parser that hyper uses too, reads the head in place, and the response is assembled
//! from prepared bytes. That takes a tenth off a redirect's processor time, kernel included (`bench
//! redirect` on 2026-11-22, median of five: 0.92 of nginx's; through hyper 1.02). The kernel takes
//! four fifths of the rest.

mod head;
pub(crate) mod prefetch;

use std::{
    fmt::Write as _,
    future::poll_fn,
    io,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, ready},
};

use http::StatusCode;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

pub use head::{ProxyHeaders, Request, RequestHead};

/// The number of bytes read at a time, and so the longest head that the fast path accepts.
const READ_BYTES: usize = 16 * 1024;
/// The number of bytes of waiting responses, about a hundred usual ones, at which no further
/// request is answered. A client that asks for more at once is handed over.
const RESPONSES_BYTES: usize = 16 * 1024;

/// How the fast path ended for a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// A full HTTP server has to answer these bytes, and all that follow.
    HandOver(Vec<u8>),
    /// The client has closed its side, and everything it sent was answered.
    Closed,
}

/// The buffers into which a thread reads requests and writes responses.
pub struct Buffers {
    read: Box<[u8]>,
    responses: Responses,
    from_proxy: ProxyHeaders,
}

impl Buffers {
    /// Creates buffers for redirects of this status. `cache_control` is the value of their header
    /// `Cache-Control`, if they have one. The headers of `from_proxy` are read into
    /// [`Request::client`] and [`Request::country`].
    pub fn new(status: StatusCode, cache_control: Option<&str>, from_proxy: ProxyHeaders) -> Self {
        let caching = cache_control.map_or_else(String::new, |value| format!("cache-control: {value}\r\n"));
        let head = format!("HTTP/1.1 {status}\r\n{caching}content-length: 0\r\nlocation: ");
        let responses = Responses { bytes: Vec::new(), head, tail: String::new(), second: i64::MIN };
        Self { read: vec![0; READ_BYTES].into(), responses, from_proxy }
    }
}

/// Responses that wait to be sent.
pub struct Responses {
    bytes: Vec<u8>,
    /// The beginning of each response, up to its location.
    head: String,
    /// The rest of a response after its location. It has the date, so it holds for `second` only.
    tail: String,
    second: i64,
}

impl Responses {
    /// Adds a redirect to `location`, which has to be a valid value of a header.
    #[inline]
    pub fn push_redirect(&mut self, location: &[u8], now: Timestamp) {
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

/// Answers the requests of a connection for as long as `respond` does. `respond` either adds a
/// response and returns true, or adds none and returns false. `commit` is called before responses
/// leave, once for those to requests that came at once. `is_stopping` is called before each turn
/// with the context of the task, so that it can keep the task's waker.
pub async fn serve<S>(
    stream: &mut S,
    buffers: &Mutex<Buffers>,
    mut is_stopping: impl FnMut(&mut Context<'_>) -> bool,
    mut respond: impl FnMut(&Request<'_>, &mut Responses) -> bool,
    mut commit: impl FnMut(),
) -> io::Result<Ending>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let turn = poll_fn(|cx| {
            if is_stopping(cx) {
                return Poll::Ready(Ok((Vec::new(), Some(Ending::HandOver(Vec::new())))));
            }
            let mut buffers = buffers.lock().expect("no code panics while it holds this lock");
            take_turn(cx, Pin::new(&mut *stream), &mut buffers, &mut respond, &mut commit)
        });
        let (unsent, ending) = turn.await?;
        stream.write_all(&unsent).await?;
        if let Some(ending) = ending {
            return Ok(ending);
        }
    }
}

/// Reads and answers until no more bytes are available. Yields to other connections whenever a read
/// fills the whole buffer. Returns what cannot be done without waiting: to write the responses for
/// which the connection has no room yet, and then to end the fast path, unless it continues.
fn take_turn<S: AsyncRead + AsyncWrite>(
    cx: &mut Context<'_>,
    mut stream: Pin<&mut S>,
    Buffers { read, responses, from_proxy }: &mut Buffers,
    respond: &mut impl FnMut(&Request<'_>, &mut Responses) -> bool,
    commit: &mut impl FnMut(),
) -> Poll<io::Result<(Vec<u8>, Option<Ending>)>> {
    loop {
        let mut read = ReadBuf::new(read);
        ready!(stream.as_mut().poll_read(cx, &mut read))?;
        if read.filled().is_empty() {
            return Poll::Ready(Ok((Vec::new(), Some(Ending::Closed))));
        }
        responses.bytes.clear();
        let rest = respond_to_all(read.filled(), from_proxy, responses, respond);
        let mut unsent = &responses.bytes[..];
        if !unsent.is_empty() {
            commit();
            if let Poll::Ready(sent) = stream.as_mut().poll_write(cx, unsent) {
                unsent = &unsent[sent?..];
            }
        }
        if !rest.is_empty() || !unsent.is_empty() {
            let ending = (!rest.is_empty()).then(|| Ending::HandOver(rest.to_vec()));
            return Poll::Ready(Ok((unsent.to_vec(), ending)));
        }
        if read.remaining() == 0 {
            // More bytes may be available, and the thread has other connections.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
    }
}

/// Answers requests in order. Returns the bytes from the first request on that it could not answer.
fn respond_to_all<'a>(
    mut bytes: &'a [u8],
    from_proxy: &ProxyHeaders,
    responses: &mut Responses,
    respond: &mut impl FnMut(&Request<'_>, &mut Responses) -> bool,
) -> &'a [u8] {
    while responses.bytes.len() < RESPONSES_BYTES
        && let Some((request, rest)) = head::parse(bytes, from_proxy)
        && respond(&request, responses)
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    /// Answers requests for links whose codes begin with a k.
    fn respond(request: &Request<'_>, responses: &mut Responses) -> bool {
        let Some(code) = request.head.path.strip_prefix("/k") else { return false };
        responses.push_redirect(format!("https://to.example/{code}").as_bytes(), Timestamp::UNIX_EPOCH);
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
    async fn converse(pieces: Vec<Vec<u8>>, holds: usize) -> (String, Ending, Vec<u8>) {
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
        let buffers = Mutex::new(Buffers::new(StatusCode::FOUND, None, ProxyHeaders::default()));
        let left = serve(&mut far, &buffers, |_| false, respond, || {}).await.unwrap();
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
        fn every_byte_is_answered_here_in_its_turn_or_handed_over(
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
                Ending::HandOver(rest) => [rest, unread].concat(),
                Ending::Closed => unread,
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
        assert_eq!(together(&known), (redirects.clone(), Ending::Closed, Vec::new()));
        let (unknown, cut) = (get("/u"), &get("/k")[..9]);
        for rest in [&unknown, cut, "\x16\x03\x01"] {
            let left = Ending::HandOver(rest.as_bytes().to_vec());
            assert_eq!(together(&(known.clone() + rest)), (redirects.clone(), left, Vec::new()));
        }
        let singly = (0..3).map(|number| get(&format!("/k{number}")).into_bytes()).collect();
        let answered = (0..3).map(redirect).collect();
        assert_eq!(on_a_runtime(converse(singly, 1 << 20)), (answered, Ending::Closed, Vec::new()));
    }

    #[test]
    fn answers_to_requests_that_come_together_are_bounded() {
        let requests = get("/k").repeat(300);
        let mut responses = Buffers::new(StatusCode::FOUND, None, ProxyHeaders::default()).responses;
        let mut with_long_urls = |_: &Request<'_>, responses: &mut Responses| {
            responses.push_redirect(&[b'x'; 2_000], Timestamp::UNIX_EPOCH);
            true
        };
        let rest = respond_to_all(
            requests.as_bytes(),
            &ProxyHeaders::default(),
            &mut responses,
            &mut with_long_urls,
        )
        .len();
        assert!((RESPONSES_BYTES..RESPONSES_BYTES + 2_200).contains(&responses.bytes.len()));
        assert!(rest > 0 && rest.is_multiple_of(get("/k").len()));
    }

    /// A client that sends what `read` puts into the buffer, and takes all responses at once.
    struct Client<R, W> {
        read: R,
        write: W,
    }

    impl<R: FnMut(&mut ReadBuf<'_>) -> Poll<()> + Unpin, W: Unpin> AsyncRead for Client<R, W> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            (self.read)(buffer).map(Ok)
        }
    }

    impl<R: Unpin, W: FnMut(&[u8]) + Unpin> AsyncWrite for Client<R, W> {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            (self.write)(bytes);
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
        let reads = Cell::new(0);
        let read = |buffer: &mut ReadBuf<'_>| {
            if reads.get() == 10 {
                // More reads than one turn may have: the test fails here instead of hanging.
                return Poll::Pending;
            }
            reads.set(reads.get() + 1);
            // Long heads with short responses. The last head ends where the buffer does.
            let head = "GET /k HTTP/1.1\r\nHost: a.example\r\nCookie: ";
            let request = format!("{head}{}\r\n\r\n", "c".repeat(1_024 - head.len() - 4));
            buffer.put_slice(request.repeat(buffer.remaining() / 1_024).as_bytes());
            Poll::Ready(())
        };
        let mut endless = Client { read, write: |_: &[u8]| {} };
        let buffers = Mutex::new(Buffers::new(StatusCode::FOUND, None, ProxyHeaders::default()));
        let mut serving = Box::pin(serve(&mut endless, &buffers, |_| false, respond, || {}));
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        assert!((0..3).all(|_| serving.as_mut().poll(cx).is_pending()));
        assert_eq!(reads.get(), 3);
    }

    #[test]
    fn what_is_answered_is_committed_before_any_of_it_leaves() {
        let (answered, committed, commits, taken) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
        let counting = |request: &Request<'_>, responses: &mut Responses| {
            answered.set(answered.get() + 1);
            respond(request, responses)
        };
        let commit = || {
            committed.set(answered.get());
            commits.set(commits.get() + 1);
        };
        let mut requests = get("/k1").repeat(3);
        let read = |buffer: &mut ReadBuf<'_>| {
            if requests.is_empty() {
                return Poll::Pending;
            }
            buffer.put_slice(std::mem::take(&mut requests).as_bytes());
            Poll::Ready(())
        };
        let write = |bytes: &[u8]| {
            assert_eq!(committed.get(), answered.get());
            taken.set(taken.get() + bytes.len());
        };
        let mut client = Client { read, write };
        let buffers = Mutex::new(Buffers::new(StatusCode::FOUND, None, ProxyHeaders::default()));
        let mut serving = Box::pin(serve(&mut client, &buffers, |_| false, counting, commit));
        assert!(serving.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
        assert_eq!((taken.get(), commits.get()), (3 * redirect(1).len(), 1));
    }

    #[test]
    fn a_connection_that_is_to_stop_is_handed_over_before_it_is_read() {
        // The client is gone, so a read would return `Ending::Closed`.
        let (_, mut far) = duplex(1_000);
        let buffers = Mutex::new(Buffers::new(StatusCode::FOUND, None, ProxyHeaders::default()));
        let left = on_a_runtime(serve(&mut far, &buffers, |_| true, respond, || {})).unwrap();
        assert_eq!(left, Ending::HandOver(Vec::new()));
    }
}
