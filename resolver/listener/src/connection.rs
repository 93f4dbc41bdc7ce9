//! One connection: through the fast path for as long as it can answer, and then through hyper.

use std::{
    convert::Infallible,
    future::{poll_fn, ready},
    net::IpAddr,
    pin::pin,
    sync::Arc,
    task::Context,
    time::Duration,
};

use api::rest;
use daemon::traces::Span;
use futures_util::future::Either;
use hyper::{
    Method, StatusCode, Uri, Version,
    body::Incoming,
    header::{CONNECTION, HOST, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{rt::TokioIo, server::graceful::GracefulConnection};
use limits::{Connection, TimedStream, from_client};
use lookup::CachedTarget;
use redirect::{
    Protocol as Scheme, Visitor, country_code,
    fast_path::{self, Ending, RequestHead, Responses},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, sleep},
};
use web::{
    Answer, HELD_BACK, TEXT,
    access_log::Access,
    answer, is_held_back,
    request_durations::{RequestDurations, RouteName, route_of},
    request_id::RequestId,
};

use crate::{ListenerThread, PublicService, base_path, router, secure};

/// The head of a request, and so the longest header.
pub(super) const HEAD_BYTES: usize = 16 * 1024;

/// Serves a connection until it ends, or while the listener closes until its request is answered.
pub(super) async fn serve_connection(mut stream: TimedStream<TcpStream>, thread: Arc<ListenerThread>) {
    if let Some(tls) = thread.service.tls.clone() {
        return Box::pin(secure::serve(stream, tls, thread)).await;
    }
    let connection = stream.connection().clone();
    if !thread.service.fast_path {
        return Box::pin(serve_with_hyper((Box::new(stream), connection, Protocol::Http1), thread)).await;
    }
    let peer = connection.peer();
    let clients = thread.service.clients.trusts(peer).then_some(&*thread.service.clients);
    let base = &*thread.service.redirector.domain_cache.config.public_url.path;
    let is_stopping = |cx: &mut Context<'_>| {
        connection.set_waker(cx.waker());
        thread.service.is_stopping()
    };
    let traces = thread.service.traces.is_some();
    let respond = |request: &fast_path::Request<'_>, responses: &mut Responses| {
        if traces && clients.is_some() && request.has_traceparent {
            return false;
        }
        // Only the default domain is below a path, and only its links are answered here.
        let below = (!base.is_empty()).then(|| request.head.below(base));
        let head = match &below {
            None => &request.head,
            Some(Some(head)) => head,
            Some(None) => return false,
        };
        let visitor = match clients {
            Some(clients) => Visitor {
                peer,
                client: clients.behind(peer, request.client.into_iter(), request.forwarded.into_iter()),
                country: request.country.and_then(country_code),
                // Links that are answered here lead all visitors alike.
                scheme: Scheme::Http,
            },
            None => Visitor { peer, client: peer, country: None, scheme: Scheme::Http },
        };
        let begun = Instant::now();
        let push = |target: &CachedTarget, now| {
            responses.push_redirect(&target.location, now);
            Some(())
        };
        let is_answered = redirect::follow_cached(&thread.redirects, visitor, head, push).is_some();
        if is_answered {
            let duration = begun.elapsed();
            thread.durations.record_redirect(duration);
            if thread.service.access_log.takes_next() {
                log_fast(&thread, visitor, &request.head, duration);
            }
        }
        is_answered
    };
    let commit = || thread.redirects.commit();
    match fast_path::serve(&mut stream, &thread.buffers, is_stopping, respond, commit).await {
        Ok(Ending::HandOver(unanswered)) => {
            stream.unread(unanswered);
            // Boxed, because hyper's state of a connection is many times as large as a redirect's.
            Box::pin(serve_with_hyper((Box::new(stream), connection, Protocol::Http1), thread)).await;
        }
        Ok(Ending::Closed) => {}
        Err(error) => tracing::debug!(%error, "connection"),
    }
}

/// Logs a redirect that the fast path has answered.
#[cold]
fn log_fast(thread: &ListenerThread, visitor: Visitor, head: &RequestHead<'_>, duration: Duration) {
    let access = Access {
        request_id: "",
        client: visitor.client,
        method: if head.is_head { &Method::HEAD } else { &Method::GET },
        path: head.path,
        route: RequestDurations::REDIRECT,
        status: thread.service.redirector.status,
        duration,
    };
    access.write();
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// The bytes of a connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Serves a connection with hyper, whatever it requests. Its stream is a trait object, because
/// hyper and all that it calls are compiled once for each kind of stream.
pub(super) async fn serve_with_hyper(
    (stream, connection, protocol): (Box<dyn Stream>, Connection, Protocol),
    thread: Arc<ListenerThread>,
) {
    let listener = Arc::clone(&thread);
    let peer = connection.peer();
    let is_proxy = thread.service.clients.trusts(peer);

    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let request = secure::as_http1(request);
        let visitor = visitor(&thread.service, peer, is_proxy, &request);
        let begun = Begun::new(&thread.service, (visitor.client, is_proxy), &request);
        if !names_one_host(&request) {
            let no_host = answer(StatusCode::BAD_REQUEST, TEXT, "send exactly one Host header\n");
            return Either::Left(ready(Ok::<_, Infallible>(begun.finish(&thread, no_host, true))));
        }
        let base = thread.service.redirector.domain_cache.base_path(redirect::host(&request));
        let request = base_path::cut_off(base, request);
        // The answer begins before the body of the request has ended.
        let is_streamed = rest::is_bulk(request.method(), request.uri().path());
        let cached = || redirect::answer_cached(&thread.redirects, visitor, &request);
        if let Some(answer) = thread.service.serves_visitors.then(cached).flatten() {
            thread.redirects.commit();
            connection.mark_answered();
            return Either::Left(ready(Ok(begun.finish_redirect(&thread, answer))));
        }
        let (wakeups, thread) = (Arc::clone(&thread.wakeups), Arc::clone(&thread));
        let serving = connection.mark_serving();
        Either::Right(wakeups.gather(connection.scope(async move {
            let routed = router::route(&thread, visitor, request);
            let mut answer = match &begun.span {
                Some(span) => span.scope(routed).await,
                None => routed.await,
            };
            thread.redirects.commit();
            if is_held_back(&answer) {
                from_client(sleep(HELD_BACK)).await;
            }
            answer.body_mut().guard = Some(serving.begin_answer());
            // Closed after a stream, because the next head could arrive as slowly as a stream may.
            Ok(begun.finish(&thread, answer, is_streamed))
        })))
    });
    let is_stopping = || match protocol {
        Protocol::Http1 => listener.service.connections.is_closing(),
        Protocol::Http2 => listener.service.is_stopping(),
    };
    let stream = TokioIo::new(stream);
    let ended = match protocol {
        Protocol::Http1 => {
            let served = http1::Builder::new()
                .max_buf_size(HEAD_BYTES)
                // Answers are one piece: a plain write is cheaper than a gathering one.
                .writev(false)
                .serve_connection(stream, service);
            drive(served, is_stopping).await
        }
        Protocol::Http2 => drive(secure::http2().serve_connection(stream, service), is_stopping).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection");
    }
}

/// Polls a connection until it ends. Once `is_stopping`, it takes no further requests.
async fn drive<C>(served: C, is_stopping: impl Fn() -> bool) -> hyper::Result<()>
where
    C: GracefulConnection<Error = hyper::Error>,
{
    let mut served = pin!(served);
    let mut is_told = false;
    // A `select!` on a token would take a lock that all cores share, at every poll of
    // every connection.
    poll_fn(|cx| {
        let polled = served.as_mut().poll(cx);
        // After the poll, so that a request that has arrived by then is still answered.
        if polled.is_pending() && is_stopping() && !std::mem::replace(&mut is_told, true) {
            served.as_mut().graceful_shutdown();
            return served.as_mut().poll(cx);
        }
        polled
    })
    .await
}

/// Returns the visitor who sent a request: the peer, or the client that it names if it is a trusted
/// proxy.
fn visitor<B>(service: &PublicService, peer: IpAddr, is_proxy: bool, request: &hyper::Request<B>) -> Visitor {
    let own = if service.tls.is_some() { Scheme::Https } else { Scheme::Http };
    if !is_proxy {
        return Visitor { peer, client: peer, country: None, scheme: own };
    }
    let clients = &service.clients;
    let country = clients.country(peer, request.headers());
    let scheme = clients.scheme(peer, request.headers());
    Visitor {
        scheme: scheme.and_then(Scheme::parse).unwrap_or(own),
        peer,
        client: clients.client_of(peer, request.headers()),
        country: country.and_then(|country| country_code(country.as_bytes())),
    }
}

/// Returns whether a request has exactly one `Host` line, as HTTP/1.1 requires (RFC 9112, section
/// 3.2). Of two, a proxy in front might read another one than this server. HTTP/1.0 needs none.
fn names_one_host<B>(request: &hyper::Request<B>) -> bool {
    let count = request.headers().get_all(HOST).iter().count();
    count == 1 || (count == 0 && request.version() < Version::HTTP_11)
}

/// A request that hyper has read, until its answer is complete.
struct Begun {
    at: Instant,
    id: RequestId,
    /// Whether an answer may say that the connection ends with it; over HTTP/2 a frame of the
    /// connection's own says so.
    may_close: bool,
    span: Option<Span>,
    /// The parts of the request for the access log, if it is logged.
    logged: Option<(IpAddr, Method, Uri)>,
}

impl Begun {
    fn new<B>(
        service: &PublicService,
        (client, is_proxy): (IpAddr, bool),
        request: &hyper::Request<B>,
    ) -> Self {
        let is_logged = service.access_log.takes_next();
        let logged = is_logged.then(|| (client, request.method().clone(), request.uri().clone()));
        let traces = service.traces.as_ref();
        let span = traces.and_then(|traces| traces.begin("HTTP", request, is_proxy));
        let may_close = request.version() != Version::HTTP_2;
        Self { at: Instant::now(), id: RequestId::of(request.headers()), may_close, span, logged }
    }

    /// Completes the answer of a cached redirect.
    fn finish_redirect(self, thread: &ListenerThread, answer: Answer) -> Answer {
        let duration = self.at.elapsed();
        thread.durations.record_redirect(duration);
        self.complete(thread, answer, false, (&thread.names.redirect, duration))
    }

    /// Completes any other answer.
    fn finish(self, thread: &ListenerThread, answer: Answer, is_last: bool) -> Answer {
        let duration = self.at.elapsed();
        let route = route_of(&answer).unwrap_or(&thread.names.other).clone();
        thread.durations.record(&route, answer.status(), duration);
        self.complete(thread, answer, is_last, (&route, duration))
    }

    /// Adds the request id, and `Connection: close` if this is the connection's last answer or the
    /// process is draining.
    fn complete(
        self,
        thread: &ListenerThread,
        mut answer: Answer,
        is_last: bool,
        (route, duration): (&RouteName, Duration),
    ) -> Answer {
        if let Some((client, method, uri)) = &self.logged {
            let access = Access {
                request_id: self.id.as_str(),
                client: *client,
                method,
                path: uri.path(),
                route: route.as_str(),
                status: answer.status(),
                duration,
            };
            access.write();
        }
        if let Some(span) = self.span {
            span.answered(route.as_str(), answer.status());
        }
        self.id.set_on(&mut answer);
        if self.may_close && (is_last || thread.service.is_draining()) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use jiff::Timestamp;
    use limits::{Connections, ListenerLimits};
    use redirect::fast_path::{Buffers, ProxyHeaders};
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    fn respond(_: &fast_path::Request<'_>, responses: &mut Responses) -> bool {
        responses.push_redirect(b"https://to.example/", Timestamp::UNIX_EPOCH);
        true
    }

    fn get(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_no_answers_or_never_ends_a_head_is_not_waited_for() {
        let connections = Arc::new(Connections::new("test", ListenerLimits::http(9, 9)));
        let _timeouts = connections.enforce_timeouts();
        let served = |far| {
            let open = connections.admit([192, 0, 2, 1].into(), None).unwrap();
            let connection = open.connection().clone();
            let mut stream = TimedStream::new(far, open, |_| ());
            let task = tokio::spawn(async move {
                let buffers = Mutex::new(Buffers::new(StatusCode::FOUND, None, ProxyHeaders::default()));
                if let Ok(Ending::HandOver(unanswered)) =
                    fast_path::serve(&mut stream, &buffers, |_| false, respond, || {}).await
                {
                    stream.unread(unanswered);
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                }
            });
            connection.set_task(task.abort_handle());
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
    }
}
