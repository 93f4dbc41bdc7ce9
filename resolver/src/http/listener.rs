//! Accepting connections: one single-threaded runtime per core, all on the same address (SO_REUSEPORT).
//!
//! Stopping without cutting anybody off takes three steps. While *draining*, everything is served, but each answer closes its
//! connection, so that clients come back elsewhere. Then *closing*: what waits in the accept queue is still taken, the sockets
//! are closed, idle connections ended and the others let finish, until a deadline.
//!
//! The number of connections is bounded by the descriptors of this process, and each client has a
//! share. When either bound is reached, the idlest connections are closed, of all clients or of
//! that one. So silent connections keep no new one out.

use std::{
    convert::Infallible,
    future::{poll_fn, ready},
    io,
    net::{IpAddr, SocketAddr, TcpListener as StdListener},
    pin::pin,
    sync::Arc,
    task::Context,
    thread,
    time::Duration,
};

use daemon::Seldom;
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
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use web::{
    client_limits::forwarded_for,
    connection_timeouts::{ThreadConnections, TimedStream},
    is_held_back,
    request_id::RequestId,
};

use super::{Answer, App, Desk, HELD_BACK, Visitor, answer, pages, redirect, router};
use crate::hot::Target;

/// Connections that may wait to be accepted, per thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
/// How long the place of a connection that was ended for another may take to become free.
const ROOM_WITHIN: Duration = Duration::from_millis(100);
/// How long to wait when the system has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
/// The head of a request, and so the longest header.
const HEAD_BYTES: usize = 16 * 1024;
/// How long visits and counts may lie with their thread.
const FLUSH: Duration = Duration::from_millis(50);
/// How long connections may take to finish once closing.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// How far stopping has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Business as usual.
    Serving,
    /// Served, but clients are asked to come back elsewhere.
    Draining,
    /// No new connections.
    Closing,
}

/// Sockets on one address, one per thread.
pub struct PublicListeners {
    sockets: Vec<StdListener>,
    address: SocketAddr,
}

impl PublicListeners {
    /// The address, with the port that port 0 became.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The sockets, for a server of the caller's own.
    #[must_use]
    pub fn into_sockets(self) -> Vec<StdListener> {
        self.sockets
    }
}

/// Binds one socket per thread.
///
/// # Errors
/// When the address is taken or not this machine's.
pub fn bind(address: SocketAddr, threads: usize) -> io::Result<PublicListeners> {
    // SO_REUSEPORT alone would let a second process of the same user take half of the connections unnoticed.
    drop(StdListener::bind(address)?);
    let first = bind_one(address)?;
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..threads {
        sockets.push(bind_one(address)?);
    }
    Ok(PublicListeners { sockets, address })
}

fn bind_one(address: SocketAddr) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Serves on every socket, each on a thread of its own; returns when all have ended after [`Phase::Closing`].
///
/// # Errors
/// When a thread or its runtime cannot be started.
pub async fn serve(
    listeners: PublicListeners,
    app: Arc<App>,
    phase: watch::Receiver<Phase>,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(app.connections.public));
    let (full, mut ended) = (Arc::new(Seldom::default()), Vec::new());
    for (index, socket) in listeners.sockets.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (app, phase) = (Arc::clone(&app), phase.clone());
        let (slots, full) = (Arc::clone(&slots), Arc::clone(&full));
        let (done, waiting) = tokio::sync::oneshot::channel::<io::Result<()>>();
        thread::Builder::new().name(format!("listener-{index}")).spawn(move || {
            let door =
                Door { desk: Arc::new(Desk::new(app)), connections: Arc::default(), phase, slots, full };
            let served = runtime.block_on(door.keep(socket));
            // Nobody waits any more if another thread failed to start.
            let _ = done.send(served);
        })?;
        ended.push(waiting);
    }
    for waiting in ended {
        waiting.await.unwrap_or_else(|_| Err(io::Error::other("a listener's thread failed")))?;
    }
    Ok(())
}

/// One thread's share.
struct Door {
    desk: Arc<Desk>,
    connections: Arc<ThreadConnections>,
    phase: watch::Receiver<Phase>,
    slots: Arc<Semaphore>,
    /// All of them were taken, or all descriptors.
    full: Arc<Seldom>,
}

impl Door {
    async fn keep(mut self, socket: StdListener) -> io::Result<()> {
        let listener = TcpListener::from_std(socket)?;
        let tasks = TaskTracker::new();
        let flushing = AbortOnDropHandle::new(tokio::spawn(flush_now_and_then(Arc::clone(&self.desk))));
        let _watching =
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.connections).enforce_timeouts()));
        let _delivering = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.desk.wakeups).deliver()));
        loop {
            let mut phase = self.phase.clone();
            tokio::select! {
                () = closing(&mut phase) => break,
                accepted = listener.accept() => self.greet(accepted, &tasks).await,
            }
        }
        self.connections.close_gracefully();
        // What the kernel has accepted already would be cut off by closing the socket.
        while let Ok(accepted) = timeout(Duration::ZERO, listener.accept()).await {
            self.greet(accepted, &tasks).await;
        }
        drop(listener);
        tasks.close();
        if timeout(CLOSE_DEADLINE, tasks.wait()).await.is_err() {
            tracing::warn!(connections = tasks.len(), "cut connections that did not finish in time");
        }
        drop(flushing);
        self.desk.flush();
        Ok(())
    }

    async fn greet(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>, tasks: &TaskTracker) {
        match accepted {
            Ok((stream, address)) => {
                let peer = address.ip();
                let Some(client) = self.desk.app.clients.connect(peer) else {
                    self.desk.app.metrics.connections_refused.increment(1);
                    return;
                };
                let Some(slot) = self.room(client.has_ended_others()).await else {
                    self.desk.app.metrics.connections_refused.increment(1);
                    return;
                };
                let (desk, connections) = (Arc::clone(&self.desk), Arc::clone(&self.connections));
                // Answers are written whole: waiting to fill a segment only delays them.
                let _ = stream.set_nodelay(true);
                let stream = self.connections.track(stream);
                let (connection, place) = (stream.connection(), client.place());
                let task = tasks.spawn(async move {
                    converse(stream, desk, peer, connections).await;
                    drop((slot, client));
                });
                let handle = self.connections.register(connection, task.abort_handle());
                self.desk.app.clients.set_handle(place, handle);
            }
            Err(error) => {
                // Out of file descriptors, most likely: spinning would make it worse.
                if let Some(times) = self.full.happened() {
                    tracing::warn!(%error, times, "accept on the public listener");
                }
                self.connections.close_idlest();
                sleep(NO_DESCRIPTOR).await;
            }
        }
    }

    /// A place for a connection. When all are taken, the idlest of this thread make room. The
    /// kernel spreads connections evenly, so they are about the idlest of all. A client whose own
    /// idlest connection made room takes no place of other clients.
    async fn room(&self, is_free_soon: bool) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(slot);
        }
        if is_free_soon
            && let Ok(Ok(slot)) = timeout(ROOM_WITHIN, Arc::clone(&self.slots).acquire_owned()).await
        {
            return Some(slot);
        }
        let ended = self.connections.close_idlest();
        if let Some(times) = self.full.happened() {
            tracing::warn!(times, ended, "as many connections are open as may be: closed the idlest");
        }
        if ended == 0 {
            return None;
        }
        timeout(ROOM_WITHIN, Arc::clone(&self.slots).acquire_owned()).await.ok()?.ok()
    }
}

/// What a thread has noted reaches the others also when it has little to do.
async fn flush_now_and_then(desk: Arc<Desk>) {
    loop {
        sleep(FLUSH).await;
        desk.flush();
    }
}

/// Serves one connection to its end; once closing, to the end of the request under way.
async fn converse(
    mut stream: TimedStream<TcpStream>,
    desk: Arc<Desk>,
    peer: IpAddr,
    connections: Arc<ThreadConnections>,
) {
    if !desk.app.fast_path {
        return Box::pin(converse_freely(stream, desk, peer, connections)).await;
    }
    let connection = stream.connection();
    let clients = desk.app.clients.trusts(peer).then_some(&*desk.app.clients);
    let is_stopping = |cx: &mut Context<'_>| {
        connection.set_waker(cx.waker());
        desk.app.is_draining() || connections.is_closing()
    };
    let redirected = |request: &fast_path::Request<'_>, responses: &mut Responses| {
        let client =
            clients.map_or(peer, |clients| clients.forwarded_client(peer, request.forwarded_for.into_iter()));
        let redirect = |target: &Target, now| {
            responses.push_redirect(&target.location, now);
            Some(())
        };
        redirect::known(&desk, client, &request.head, redirect).is_some()
    };
    match fast_path::serve(&mut stream, &desk.buffers, is_stopping, redirected).await {
        Ok(Outcome::HandOver(unanswered)) => {
            stream.unread(unanswered);
            // In a box: what hyper keeps of a connection is many times what a redirect needs.
            Box::pin(converse_freely(stream, desk, peer, connections)).await;
        }
        Ok(Outcome::Closed) => {}
        Err(error) => tracing::debug!(%error, "connection"),
    }
}

/// The same through hyper, whatever is asked for.
async fn converse_freely(
    stream: TimedStream<TcpStream>,
    desk: Arc<Desk>,
    peer: IpAddr,
    connections: Arc<ThreadConnections>,
) {
    let connection = stream.connection();
    let asking = connection.clone();
    let is_proxy = desk.app.clients.trusts(peer);

    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let id = RequestId::of(request.headers());
        let is_streamed = router::is_streamed(&request);
        if !names_one_host(&request) {
            return Either::Left(ready(Ok::<_, Infallible>(parting(&desk.app, no_host(), true, id))));
        }
        let client =
            if is_proxy { desk.app.clients.forwarded_client(peer, forwarded_for(&request)) } else { peer };
        let visitor = Visitor { peer, client };
        if let Some(answer) = redirect::at_once(&desk, visitor, &request) {
            return Either::Left(ready(Ok(parting(&desk.app, answer, false, id))));
        }
        let (wakeups, desk, asking) = (Arc::clone(&desk.wakeups), Arc::clone(&desk), asking.clone());
        if is_streamed {
            asking.mark_streaming();
        } else {
            asking.mark_serving();
        }
        let served = asking.clone();
        Either::Right(wakeups.gather(served.scope(async move {
            let mut answer = router::route(&desk, visitor, request).await;
            if is_held_back(&answer) {
                asking.mark_held_back();
                sleep(HELD_BACK).await;
            }
            answer.body_mut().set_guard(asking.begin_answer());
            // Else the next request's head could come as slowly as a stream may.
            Ok(parting(&desk.app, answer, is_streamed, id))
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
    // Not a `select!` with the phase: that would take a lock that all cores share, on every turn of every connection.
    let ended = poll_fn(|cx| {
        connection.set_waker(cx.waker());
        let polled = served.as_mut().poll(cx);
        // Afterwards, for what has come until then is still answered.
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

/// A request of HTTP/1.1 has one line that names the host, neither none nor two (RFC 9112, section 3.2): which of two is meant a proxy in front may
/// see otherwise than we do.
fn names_one_host<B>(request: &hyper::Request<B>) -> bool {
    let count = request.headers().get_all(HOST).iter().count();
    count == 1 || (count == 0 && request.version() < Version::HTTP_11)
}

fn no_host() -> Answer {
    answer(StatusCode::BAD_REQUEST, pages::TEXT, "expected one line with the header Host\n")
}

/// Names the request, and asks the client to come back on another connection, after the last answer of this one or when this process wants to be
/// rid of it.
fn parting(app: &App, mut answer: Answer, is_last: bool, id: RequestId) -> Answer {
    id.set_on(&mut answer);
    if is_last || app.is_draining() {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Returns once new connections are to be refused, also when nobody is left to say so.
async fn closing(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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
                    fast_path::serve(&mut stream, &buffers, |_| false, respond).await
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
