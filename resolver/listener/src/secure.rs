//! Connections with TLS, and requests over HTTP/2.
//!
//! A request over HTTP/2 is given the form of HTTP/1.1, an authority in `Host` and a path, before
//! anything else looks at it. So there is one set of rules for both.

use std::sync::Arc;

use hyper::{
    Request, Uri, Version,
    header::{HOST, HeaderValue},
    server::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use limits::{TimedStream, http2_windows::PUBLIC};
use tls::{HTTP2, ServerTls};
use tokio::net::TcpStream;

use crate::{
    ListenerThread,
    connection::{HEAD_BYTES, Protocol, serve_with_hyper},
};

/// Bytes of each answer that wait for the client.
const SEND_BYTES: usize = 16 * 1024;
/// Maximum number of requests that a client may have reset while they waited to be answered. It
/// then floods the listener (CVE-2023-44487), and its connection ends.
const RESETS: usize = 32;

/// Serves a connection that begins with a handshake. The time for it is that for a head.
pub(super) async fn serve(stream: TimedStream<TcpStream>, tls: ServerTls, thread: Arc<ListenerThread>) {
    let connection = stream.connection().clone();
    connection.mark_handshake();
    let stream = match tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(peer = %connection.peer(), %error, "TLS handshake"),
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
    connection.mark_shaken(is_http2);
    let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Http1 };
    Box::pin(serve_with_hyper((Box::new(stream), connection, protocol), thread)).await;
}

/// Returns how connections over HTTP/2 are served. Whatever a client may send without end is
/// bounded: requests at a time, heads, resets, and bytes that nobody has read.
pub(super) fn http2() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(PUBLIC.streams)
        .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .initial_stream_window_size(PUBLIC.stream)
        .initial_connection_window_size(PUBLIC.connection)
        .max_send_buf_size(SEND_BYTES);
    builder
}

/// Gives a request over HTTP/2 the form of HTTP/1.1. If its authority and its header `Host`
/// contradict each other (RFC 9113, section 8.3.1), it is left with both, and so is refused like a
/// request with two hosts.
pub(super) fn as_http1<B>(mut request: Request<B>) -> Request<B> {
    if request.version() != Version::HTTP_2 {
        return request;
    }
    let authority = request.uri().authority().and_then(|name| HeaderValue::from_str(name.as_str()).ok());
    if let Some(authority) = authority {
        if request.headers().get_all(HOST).iter().all(|host| host == authority) {
            request.headers_mut().insert(HOST, authority);
        } else {
            request.headers_mut().append(HOST, authority);
        }
    }
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| "/".parse().expect("a path"));
    *request.uri_mut() = Uri::from(path);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, hosts: &[&str]) -> Request<()> {
        let request = Request::builder().uri(uri).version(Version::HTTP_2);
        hosts.iter().fold(request, |request, host| request.header(HOST, *host)).body(()).unwrap()
    }

    #[test]
    fn an_authority_becomes_the_host_and_a_contradiction_is_refused() {
        for (uri, hosts, expected) in [
            ("https://sho.rt/abc?x=1", &[][..], Some(("sho.rt", "/abc?x=1"))),
            ("https://sho.rt:8443/abc", &["sho.rt:8443"], Some(("sho.rt:8443", "/abc"))),
            ("/abc", &["sho.rt"], Some(("sho.rt", "/abc"))),
            ("https://sho.rt/abc", &["other.example"], None),
            ("https://sho.rt/abc", &["sho.rt", "other.example"], None),
            ("/abc", &[], None),
        ] {
            let made = as_http1(request(uri, hosts));
            let named: Vec<&str> =
                made.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap()).collect();
            let found = (named.len() == 1).then(|| (named[0], made.uri().to_string()));
            assert_eq!(found, expected.map(|(host, uri)| (host, uri.to_owned())), "{uri} {hosts:?}");
        }
    }
}
