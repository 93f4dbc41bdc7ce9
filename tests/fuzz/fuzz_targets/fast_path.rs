//! The fast path against hyper.
//!
//! The first byte of the input is the size of the pieces in which the rest arrives, 0 for all of it
//! at once. The rest is what a client sends before it closes its side. Links are known whose codes
//! begin with a k. As in the resolver, a code has letters and digits only: the fast path leaves it
//! to its caller to know no link with a path that hyper refuses.
//!
//! 1. hyper answers each request that the fast path answers, and reads it alike: method, path,
//!    query, and every header that a redirect or its visit depends on. So nothing that hyper would
//!    refuse is answered.
//! 2. The fast path answers in order, and hands over the rest of the bytes unchanged.
//! 3. hyper alone, and the fast path with hyper behind it, see the same requests and answer with
//!    the same statuses. This is checked if all bytes fit into hyper's first read and no request
//!    may have a body: both hold for `tests/it/fast_path.rs` too, which says why, and compares
//!    whole answers of whole servers.
#![no_main]

use std::{
    cell::RefCell,
    convert::Infallible,
    future::ready,
    io,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll},
};

use http_body_util::Empty;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::HeaderValue,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use redirect::fast_path::{self, Buffers, Ending, ProxyHeaders, Responses};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::Runtime,
};

/// The longest head, as the resolver configures hyper.
const HEAD_BYTES: usize = 16 * 1024;
/// The size of hyper's first read, in bytes.
const FIRST_READ: usize = 8 * 1024;
const COUNTRY: &str = "cf-ipcountry";
const TARGET: &[u8] = b"https://to.example/";

thread_local! {
    static RUNTIME: Runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers opens nothing");
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, sent)) = data.split_first() else { return };
    let piece = if *piece == 0 { usize::MAX } else { usize::from(*piece) };
    let (fast, rest) = answer_fast(sent, piece);
    let alone = answer_with_hyper(sent, piece);
    assert!(fast.len() <= alone.requests.len(), "hyper saw {:#?}, the fast path {fast:#?}", alone.requests);
    assert_eq!(fast, alone.requests[..fast.len()]);
    assert!(alone.statuses.starts_with(&vec![302; fast.len()]), "{:?}", alone.statuses);

    let text = sent.to_ascii_lowercase();
    let has = |name: &[u8]| text.windows(name.len()).any(|bytes| bytes == name);
    if sent.len() <= FIRST_READ
        && piece == usize::MAX
        && !has(b"content-length")
        && !has(b"transfer-encoding")
    {
        let behind = answer_with_hyper(&rest, piece);
        assert_eq!([vec![302; fast.len()], behind.statuses].concat(), alone.statuses);
        assert_eq!([fast, behind.requests].concat(), alone.requests);
    }
});

/// The parts of a request that a redirect and its visit depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    is_head: bool,
    path_and_query: String,
    path: String,
    query: Option<String>,
    host: Option<String>,
    /// The headers that are recorded, the client's address and its country.
    headers: [Vec<u8>; 6],
    is_opted_out: bool,
}

/// A connection as hyper serves it.
struct Served {
    requests: Vec<Seen>,
    statuses: Vec<u16>,
}

/// Serves a connection by the fast path. Returns the requests that it answered, and the bytes that
/// it left.
fn answer_fast(sent: &[u8], piece: usize) -> (Vec<Seen>, Vec<u8>) {
    let mut wire = Wire::new(sent, piece);
    let mut requests = Vec::new();
    let from_proxy = ProxyHeaders { country: Some(COUNTRY.into()), ..ProxyHeaders::default() };
    let buffers = Buffers::new(StatusCode::FOUND, None, from_proxy);
    let respond = |request: &fast_path::Request<'_>, responses: &mut Responses| {
        let is_known = is_known(request.head.path);
        if is_known {
            requests.push(seen_fast(request));
            responses.push_redirect(TARGET, Timestamp::UNIX_EPOCH);
        }
        is_known
    };
    let buffers = Mutex::new(buffers);
    let serving = fast_path::serve(&mut wire, &buffers, |_| false, respond, || {});
    let outcome = RUNTIME.with(|runtime| runtime.block_on(serving)).expect("the connection does not fail");
    let left = match outcome {
        Ending::HandOver(bytes) => [&*bytes, wire.sent].concat(),
        Ending::Closed => Vec::new(),
    };
    assert!(sent.ends_with(&left), "what is handed over is the rest of what was sent");
    let answer = b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: https://to.example/\r\n\
        date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
    assert!(wire.answered == answer.repeat(requests.len()), "one answer for each request");
    (requests, left)
}

fn is_known(path: &str) -> bool {
    path.strip_prefix("/k").is_some_and(|rest| rest.bytes().all(|one| one.is_ascii_alphanumeric()))
}

fn seen_fast(request: &fast_path::Request<'_>) -> Seen {
    let head = &request.head;
    Seen {
        is_head: head.is_head,
        path_and_query: head.path_and_query.to_owned(),
        path: head.path.to_owned(),
        query: head.query.map(str::to_owned),
        host: head.host.map(str::to_owned),
        headers: [
            head.user_agent.unwrap_or_default().to_vec(),
            head.referer.unwrap_or_default().to_vec(),
            head.accept_language.unwrap_or_default().to_vec(),
            request.client.unwrap_or_default().to_vec(),
            request.forwarded.unwrap_or_default().to_vec(),
            request.country.unwrap_or_default().to_vec(),
        ],
        is_opted_out: head.is_opted_out,
    }
}

/// Serves a connection with hyper as the resolver does.
fn answer_with_hyper(sent: &[u8], piece: usize) -> Served {
    let mut wire = Wire::new(sent, piece);
    let requests = RefCell::new(Vec::new());
    let service = service_fn(|request: Request<Incoming>| {
        let hosts = request.headers().get_all("host").iter().count();
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = match hosts {
            1 if is_known(request.uri().path()) => StatusCode::FOUND,
            1 => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        if hosts != 1 {
            response.headers_mut().insert("connection", HeaderValue::from_static("close"));
        }
        requests.borrow_mut().push(seen_by_hyper(&request));
        ready(Ok::<_, Infallible>(response))
    });
    let serving = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .writev(false)
        .serve_connection(TokioIo::new(&mut wire), service);
    // hyper reports a malformed request as an error too, after it has answered.
    let _ = RUNTIME.with(|runtime| runtime.block_on(serving));
    Served { requests: requests.into_inner(), statuses: statuses(&wire.answered) }
}

fn seen_by_hyper(request: &Request<Incoming>) -> Seen {
    let (uri, headers) = (request.uri(), request.headers());
    let first = |name: &str| headers.get(name).map_or_else(Vec::new, |value| value.as_bytes().to_vec());
    let asks = |name: &str| headers.get_all(name).iter().any(|value| value == "1");
    Seen {
        is_head: request.method() == "HEAD",
        path_and_query: uri.path_and_query().map_or(uri.path(), |whole| whole.as_str()).to_owned(),
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
        host: headers
            .get("host")
            .and_then(|host| std::str::from_utf8(host.as_bytes()).ok())
            .map(str::to_owned),
        headers: ["user-agent", "referer", "accept-language", "x-forwarded-for", "forwarded", COUNTRY]
            .map(first),
        is_opted_out: asks("dnt") || asks("sec-gpc"),
    }
}

/// Returns the statuses of responses without a body.
fn statuses(answered: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(answered);
    let status = |part: &str| part.get(2..5)?.parse().ok();
    text.split("HTTP/1.").skip(1).filter_map(status).collect()
}

/// A connection whose client has sent everything already, takes every answer, and then closes its
/// side.
struct Wire<'a> {
    sent: &'a [u8],
    piece: usize,
    answered: Vec<u8>,
    /// Reads at the end that still wait. hyper drops an answer if its client is gone by then.
    waits: u8,
}

impl<'a> Wire<'a> {
    fn new(sent: &'a [u8], piece: usize) -> Self {
        Self { sent, piece, answered: Vec::new(), waits: 2 }
    }
}

impl AsyncRead for Wire<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.sent.is_empty() && self.waits > 0 {
            self.waits -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let (now, later) = self.sent.split_at(self.piece.min(to.remaining()).min(self.sent.len()));
        to.put_slice(now);
        self.sent = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.answered.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
