//! One connection: through the fast path for as long as it can answer, and then through hyper.

use std::{
    convert::Infallible,
    future::{poll_fn, ready},
    net::IpAddr,
    pin::pin,
    sync::Arc,
    task::Context,
};

use fast_path::{Outcome, Responses};
use futures_util::future::Either;
use hyper::{
    StatusCode, Version,
    body::Incoming,
    header::{CONNECTION, HOST, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use redirect::{Visitor, country_code, thread_cache::CachedTarget};
use tokio::{net::TcpStream, time::sleep};
use web::{
    Answer, HELD_BACK, TEXT, answer,
    client_limits::{Clients, forwarded_for},
    connection_timeouts::{ThreadConnections, TimedStream},
    is_held_back,
    request_id::RequestId,
};

use super::{ListenerThread, PublicService, router};

/// The head of a request, and so the longest header.
const HEAD_BYTES: usize = 16 * 1024;

/// Serves a connection until it ends, or while the listener closes until its request is answered.
pub(super) async fn serve_connection(
    mut stream: TimedStream<TcpStream>,
    thread: Arc<ListenerThread>,
    peer: IpAddr,
    connections: Arc<ThreadConnections>,
) {
    if !thread.service.fast_path {
        return Box::pin(serve_with_hyper(stream, thread, peer, connections)).await;
    }
    let connection = stream.connection();
    let clients = thread.service.clients.trusts(peer).then_some(&*thread.service.clients);
    let is_stopping = |cx: &mut Context<'_>| {
        connection.set_waker(cx.waker());
        thread.service.is_draining() || connections.is_closing()
    };
    let respond = |request: &fast_path::Request<'_>, responses: &mut Responses| {
        let visitor = match clients {
            Some(clients) => Visitor {
                peer,
                client: clients.forwarded_client(peer, request.forwarded_for.into_iter()),
                country: request.country.and_then(country_code),
            },
            None => Visitor { peer, client: peer, country: None },
        };
        let push = |target: &CachedTarget, now| {
            responses.push_redirect(&target.location, now);
            Some(())
        };
        redirect::follow_cached(&thread.redirects, visitor, &request.head, push).is_some()
    };
    let commit = || thread.redirects.commit();
    match fast_path::serve(&mut stream, &thread.buffers, is_stopping, respond, commit).await {
        Ok(Outcome::HandOver(unanswered)) => {
            stream.unread(unanswered);
            // Boxed, because hyper's state of a connection is many times as large as a redirect's.
            Box::pin(serve_with_hyper(stream, thread, peer, connections)).await;
        }
        Ok(Outcome::Closed) => {}
        Err(error) => tracing::debug!(%error, "connection"),
    }
}

/// Serves a connection with hyper, whatever it requests.
async fn serve_with_hyper(
    stream: TimedStream<TcpStream>,
    thread: Arc<ListenerThread>,
    peer: IpAddr,
    connections: Arc<ThreadConnections>,
) {
    let connection = stream.connection();
    let asking = connection.clone();
    let is_proxy = thread.service.clients.trusts(peer);

    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let id = RequestId::of(request.headers());
        let is_streamed = router::is_streamed(&request);
        if !names_one_host(&request) {
            return Either::Left(ready(Ok::<_, Infallible>(finish(&thread.service, no_host(), true, id))));
        }
        let visitor = visitor(&thread.service.clients, peer, is_proxy, &request);
        let cached = || redirect::answer_cached(&thread.redirects, visitor, &request);
        if let Some(answer) = thread.service.serves_visitors.then(cached).flatten() {
            thread.redirects.commit();
            return Either::Left(ready(Ok(finish(&thread.service, answer, false, id))));
        }
        let (wakeups, thread, asking) = (Arc::clone(&thread.wakeups), Arc::clone(&thread), asking.clone());
        if is_streamed {
            asking.mark_streaming();
        } else {
            asking.mark_serving();
        }
        let served = asking.clone();
        Either::Right(wakeups.gather(served.scope(async move {
            let mut answer = router::route(&thread, visitor, request).await;
            thread.redirects.commit();
            if is_held_back(&answer) {
                asking.mark_held_back();
                sleep(HELD_BACK).await;
            }
            answer.body_mut().set_guard(asking.begin_answer());
            // Closed after a stream, because the next head could arrive as slowly as a stream may.
            Ok(finish(&thread.service, answer, is_streamed, id))
        })))
    });
    let mut served = pin!(
        http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            // Answers are one piece: a plain write is cheaper than a gathering one.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut is_told = false;
    // A `select!` on the phase would take a lock that all cores share, at every poll of
    // every connection.
    let ended = poll_fn(|cx| {
        connection.set_waker(cx.waker());
        let polled = served.as_mut().poll(cx);
        // After the poll, so that a request that has arrived by then is still answered.
        if polled.is_pending() && connections.is_closing() && !std::mem::replace(&mut is_told, true) {
            served.as_mut().graceful_shutdown();
            return served.as_mut().poll(cx);
        }
        polled
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "connection");
    }
}

/// Returns the visitor who sent a request: the peer, or the client that it names if it is a trusted
/// proxy.
fn visitor<B>(clients: &Clients, peer: IpAddr, is_proxy: bool, request: &hyper::Request<B>) -> Visitor {
    if !is_proxy {
        return Visitor { peer, client: peer, country: None };
    }
    let country = clients.country(peer, request.headers());
    Visitor {
        peer,
        client: clients.forwarded_client(peer, forwarded_for(request)),
        country: country.and_then(|country| country_code(country.as_bytes())),
    }
}

/// Returns whether a request has exactly one `Host` line, as HTTP/1.1 requires (RFC 9112, section
/// 3.2). Of two, a proxy in front might read another one than this server. HTTP/1.0 needs none.
fn names_one_host<B>(request: &hyper::Request<B>) -> bool {
    let count = request.headers().get_all(HOST).iter().count();
    count == 1 || (count == 0 && request.version() < Version::HTTP_11)
}

fn no_host() -> Answer {
    answer(StatusCode::BAD_REQUEST, TEXT, "expected one line with the header Host\n")
}

/// Adds the request id, and `Connection: close` if this is the connection's last answer or the
/// process is draining.
fn finish(service: &PublicService, mut answer: Answer, is_last: bool, id: RequestId) -> Answer {
    id.set_on(&mut answer);
    if is_last || service.is_draining() {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use fast_path::Buffers;
    use jiff::Timestamp;
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
        let connections = Arc::new(ThreadConnections::default());
        let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
        let served = |far| {
            let mut stream = connections.track(far);
            let connection = stream.connection();
            let task = tokio::spawn(async move {
                let buffers = Mutex::new(Buffers::new(StatusCode::FOUND, None));
                if let Ok(Outcome::HandOver(unanswered)) =
                    fast_path::serve(&mut stream, &buffers, |_| false, respond, || {}).await
                {
                    stream.unread(unanswered);
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                }
            });
            connections.register(connection, task.abort_handle());
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
}
