//! Accepts connections: one single-threaded runtime per core, all on the same address
//! (SO_REUSEPORT).
//!
//! A stop cuts off no request that ends within the deadline. It takes two phases after normal
//! service. In [`Phase::Draining`] requests are served, but each answer closes its connection, so
//! that clients reconnect to another resolver. In [`Phase::Closing`] the connections in the accept
//! queue are still taken. Then the sockets are closed, idle connections ended, and the others have
//! until the deadline to finish.
//!
//! The descriptors and the memory of the process bound the number of connections, and each client
//! has a share. When either bound is reached, the idlest connections are closed: of all clients, or
//! of that client. So silent connections keep no new one out.

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

use super::{
    Answer, App, Desk, HELD_BACK, HeldBack, Visitor, answer,
    express::{self, Answers, Left, Received},
    limits::forwarded_for,
    pages,
    pulse::{Ward, Watched},
    redirect,
    request_id::RequestId,
    router,
};
use crate::hot::Target;

/// The length of the accept queue of each thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
/// The time to wait for the slot of a connection that was ended to make room.
const ROOM_WITHIN: Duration = Duration::from_millis(100);
/// The pause after a failed accept, which usually means that no descriptor is left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
/// The maximum size of the head of a request in bytes, and so of a header.
const HEAD_BYTES: usize = 16 * 1024;
/// The interval at which each thread hands over its visits and counts.
const FLUSH: Duration = Duration::from_millis(50);
/// The deadline for connections to finish after [`Phase::Closing`] has begun.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// The phases of a listener's life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Normal service.
    Serving,
    /// Requests are served, but each answer closes its connection.
    Draining,
    /// New connections are refused.
    Closing,
}

/// Listening sockets on one address, one per thread.
pub struct PublicListeners {
    sockets: Vec<StdListener>,
    address: SocketAddr,
}

impl PublicListeners {
    /// Returns the bound address, with the actual port if port 0 was requested.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the sockets, for a caller that runs its own server on them.
    #[must_use]
    pub fn into_sockets(self) -> Vec<StdListener> {
        self.sockets
    }
}

/// Binds one socket per thread.
///
/// # Errors
/// Returns an error if the address is in use or does not belong to this machine.
pub fn bind(address: SocketAddr, threads: usize) -> io::Result<PublicListeners> {
    // SO_REUSEPORT alone would let a second process of the same user take half of the connections
    // unnoticed.
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

/// Serves on every socket, each on its own thread. Returns when all threads have ended after
/// [`Phase::Closing`].
///
/// # Errors
/// Returns an error if a thread or its runtime cannot be started, or if a listener fails.
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
            let door = Door { desk: Arc::new(Desk::new(app)), ward: Arc::default(), phase, slots, full };
            let served = runtime.block_on(door.keep(socket));
            // The receiver is gone if another thread failed to start.
            let _ = done.send(served);
        })?;
        ended.push(waiting);
    }
    for waiting in ended {
        waiting.await.unwrap_or_else(|_| Err(io::Error::other("a listener's thread failed")))?;
    }
    Ok(())
}

/// The listener of one thread.
struct Door {
    desk: Arc<Desk>,
    ward: Arc<Ward>,
    phase: watch::Receiver<Phase>,
    slots: Arc<Semaphore>,
    /// Limits how often full slots or exhausted descriptors are logged.
    full: Arc<Seldom>,
}

impl Door {
    async fn keep(mut self, socket: StdListener) -> io::Result<()> {
        let listener = TcpListener::from_std(socket)?;
        let connections = TaskTracker::new();
        let flushing = AbortOnDropHandle::new(tokio::spawn(flush_now_and_then(Arc::clone(&self.desk))));
        let _watching = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.ward).watch()));
        let _delivering = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.desk.wakeups).deliver()));
        loop {
            let mut phase = self.phase.clone();
            tokio::select! {
                () = closing(&mut phase) => break,
                accepted = listener.accept() => self.greet(accepted, &connections).await,
            }
        }
        self.ward.close();
        // Closing the socket would reset the connections that the kernel has accepted already.
        while let Ok(accepted) = timeout(Duration::ZERO, listener.accept()).await {
            self.greet(accepted, &connections).await;
        }
        drop(listener);
        connections.close();
        if timeout(CLOSE_DEADLINE, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "cut connections that did not finish in time");
        }
        drop(flushing);
        self.desk.flush();
        Ok(())
    }

    async fn greet(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>, connections: &TaskTracker) {
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
                let (desk, ward) = (Arc::clone(&self.desk), Arc::clone(&self.ward));
                // Answers are written whole, so waiting to fill a segment would only delay them.
                let _ = stream.set_nodelay(true);
                let stream = self.ward.attend(stream);
                let (patient, place) = (stream.patient(), client.place());
                let task = connections.spawn(async move {
                    converse(stream, desk, peer, ward).await;
                    drop((slot, client));
                });
                let seat = self.ward.admit(patient, task.abort_handle());
                self.desk.app.clients.attend(place, seat);
            }
            Err(error) => {
                // The process is most likely out of file descriptors, and retrying at once would
                // make it worse.
                if let Some(times) = self.full.happened() {
                    tracing::warn!(%error, times, "accept on the public listener");
                }
                self.ward.end_idlest();
                sleep(NO_DESCRIPTOR).await;
            }
        }
    }

    /// Acquires a slot for a connection. When all slots are taken, the idlest connections of this
    /// thread make room. The kernel spreads connections evenly, so they are about the idlest of
    /// all. A client whose own idlest connection was ended for this one takes no slot from other
    /// clients.
    async fn room(&self, is_free_soon: bool) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(slot);
        }
        if is_free_soon
            && let Ok(Ok(slot)) = timeout(ROOM_WITHIN, Arc::clone(&self.slots).acquire_owned()).await
        {
            return Some(slot);
        }
        let ended = self.ward.end_idlest();
        if let Some(times) = self.full.happened() {
            tracing::warn!(times, ended, "as many connections are open as may be: closed the idlest");
        }
        if ended == 0 {
            return None;
        }
        timeout(ROOM_WITHIN, Arc::clone(&self.slots).acquire_owned()).await.ok()?.ok()
    }
}

/// Hands over the visits and counts of a thread at an interval, so that they are not held up on an
/// idle thread.
async fn flush_now_and_then(desk: Arc<Desk>) {
    loop {
        sleep(FLUSH).await;
        desk.flush();
    }
}

/// Serves one connection until it ends or, in [`Phase::Closing`], until the request under way is
/// answered.
async fn converse(mut stream: Watched<TcpStream>, desk: Arc<Desk>, peer: IpAddr, ward: Arc<Ward>) {
    if !desk.app.fast_path {
        return Box::pin(converse_freely(stream, desk, peer, ward)).await;
    }
    let patient = stream.patient();
    let clients = desk.app.clients.trusts(peer).then_some(&*desk.app.clients);
    let is_stopping = |cx: &mut Context<'_>| {
        patient.is_woken_by(cx.waker());
        desk.app.is_draining() || ward.is_closing()
    };
    let redirected = |request: &Received<'_>, answers: &mut Answers| {
        let client = clients.map_or(peer, |clients| clients.behind(peer, request.forwarded_for.into_iter()));
        let redirect = |target: &Target, now| {
            answers.redirect(&target.location, now);
            Some(())
        };
        redirect::known(&desk, client, &request.asked, redirect).is_some()
    };
    match express::serve(&mut stream, &desk.buffers, is_stopping, redirected).await {
        Ok(Left::ToHyper(unanswered)) => {
            stream.unread(unanswered);
            // Boxed: hyper's state of a connection is many times what the fast path needs.
            Box::pin(converse_freely(stream, desk, peer, ward)).await;
        }
        Ok(Left::Ended) => {}
        Err(error) => tracing::debug!(%error, "connection"),
    }
}

/// Serves one connection through hyper, with all kinds of requests.
async fn converse_freely(stream: Watched<TcpStream>, desk: Arc<Desk>, peer: IpAddr, ward: Arc<Ward>) {
    let patient = stream.patient();
    let asking = patient.clone();
    let is_proxy = desk.app.clients.trusts(peer);

    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let id = RequestId::of(request.headers());
        let is_streamed = router::is_streamed(&request);
        if !names_one_host(&request) {
            return Either::Left(ready(Ok::<_, Infallible>(parting(&desk.app, no_host(), true, id))));
        }
        let client = if is_proxy { desk.app.clients.behind(peer, forwarded_for(&request)) } else { peer };
        let visitor = Visitor { peer, client };
        if let Some(answer) = redirect::at_once(&desk, visitor, &request) {
            return Either::Left(ready(Ok(parting(&desk.app, answer, false, id))));
        }
        let (wakeups, desk, asking) = (Arc::clone(&desk.wakeups), Arc::clone(&desk), asking.clone());
        if is_streamed {
            asking.is_streamed();
        } else {
            asking.is_served();
        }
        let served = asking.clone();
        Either::Right(wakeups.gather(served.serve(async move {
            let mut answer = router::route(&desk, visitor, request).await;
            if answer.extensions().get::<HeldBack>().is_some() {
                asking.is_held_back();
                sleep(HELD_BACK).await;
            }
            answer.body_mut().attend(asking.begin_answer());
            // Otherwise the next request's head could arrive as slowly as a stream may.
            Ok(parting(&desk.app, answer, is_streamed, id))
        })))
    });
    let mut connection = pin!(
        http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            // An answer is one piece, for which a plain write is cheaper than a vectored one.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut is_told = false;
    // Not a `select!` on the phase: that would take a lock shared by all cores on every poll of
    // every connection.
    let ended = poll_fn(|cx| {
        patient.is_woken_by(cx.waker());
        let polled = connection.as_mut().poll(cx);
        // Checked after the poll, so that requests that arrived before are still answered.
        if polled.is_pending() && ward.is_closing() && !std::mem::replace(&mut is_told, true) {
            connection.as_mut().graceful_shutdown();
            return connection.as_mut().poll(cx);
        }
        polled
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "connection");
    }
}

/// Returns whether a request has exactly one `Host` header (RFC 9112, section 3.2); HTTP/1.0 may
/// omit it. With two of them, a proxy in front could read another host than this server.
fn names_one_host<B>(request: &hyper::Request<B>) -> bool {
    let count = request.headers().get_all(HOST).iter().count();
    count == 1 || (count == 0 && request.version() < Version::HTTP_11)
}

fn no_host() -> Answer {
    answer(StatusCode::BAD_REQUEST, pages::TEXT, "expected one line with the header Host\n")
}

/// Adds the request's id to an answer. Closes the connection after the last answer of it, or while
/// this process is draining.
fn parting(app: &App, mut answer: Answer, is_last: bool, id: RequestId) -> Answer {
    id.tell(&mut answer);
    if is_last || app.is_draining() {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Waits for [`Phase::Closing`]. Returns as well if the sender of phases is gone.
async fn closing(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}
