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
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
    thread,
    time::Duration,
};

use daemon::Seldom;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use web::connection_timeouts::ThreadConnections;

use super::{ListenerThread, PublicService, connection::serve_connection};

/// Connections that may wait to be accepted, per thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
/// How long the place of a connection that was ended for another may take to become free.
const ROOM_WITHIN: Duration = Duration::from_millis(100);
/// How long to wait when the system has no descriptor left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
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
pub(crate) async fn serve(
    listeners: PublicListeners,
    service: Arc<PublicService>,
    phase: watch::Receiver<Phase>,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(service.connections_max));
    let (full, mut ended) = (Arc::new(Seldom::default()), Vec::new());
    for (index, socket) in listeners.sockets.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (service, phase) = (Arc::clone(&service), phase.clone());
        let (slots, full) = (Arc::clone(&slots), Arc::clone(&full));
        let (done, waiting) = tokio::sync::oneshot::channel::<io::Result<()>>();
        thread::Builder::new().name(format!("listener-{index}")).spawn(move || {
            let thread = Arc::new(ListenerThread::new(service));
            let acceptor = Acceptor { thread, connections: Arc::default(), phase, slots, full };
            let served = runtime.block_on(acceptor.run(socket));
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

/// Accepts connections on one thread.
struct Acceptor {
    thread: Arc<ListenerThread>,
    connections: Arc<ThreadConnections>,
    phase: watch::Receiver<Phase>,
    slots: Arc<Semaphore>,
    /// All of them were taken, or all descriptors.
    full: Arc<Seldom>,
}

impl Acceptor {
    async fn run(mut self, socket: StdListener) -> io::Result<()> {
        let listener = TcpListener::from_std(socket)?;
        let tasks = TaskTracker::new();
        let flushing = AbortOnDropHandle::new(tokio::spawn(flush_now_and_then(Arc::clone(&self.thread))));
        let _watching =
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.connections).enforce_timeouts()));
        let _delivering = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.thread.wakeups).deliver()));
        loop {
            let mut phase = self.phase.clone();
            tokio::select! {
                () = closing(&mut phase) => break,
                accepted = listener.accept() => self.handle_accepted(accepted, &tasks).await,
            }
        }
        self.connections.close_gracefully();
        // What the kernel has accepted already would be cut off by closing the socket.
        while let Ok(accepted) = timeout(Duration::ZERO, listener.accept()).await {
            self.handle_accepted(accepted, &tasks).await;
        }
        drop(listener);
        tasks.close();
        if timeout(CLOSE_DEADLINE, tasks.wait()).await.is_err() {
            tracing::warn!(connections = tasks.len(), "cut connections that did not finish in time");
        }
        drop(flushing);
        self.thread.flush();
        Ok(())
    }

    async fn handle_accepted(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>, tasks: &TaskTracker) {
        match accepted {
            Ok((stream, address)) => {
                let peer = address.ip();
                let service = &self.thread.service;
                let Some(client) = service.clients.connect(peer) else {
                    service.metrics.connections_refused.increment(1);
                    return;
                };
                let Some(slot) = self.acquire_slot(client.has_ended_others()).await else {
                    service.metrics.connections_refused.increment(1);
                    return;
                };
                let (thread, connections) = (Arc::clone(&self.thread), Arc::clone(&self.connections));
                // Answers are written whole: waiting to fill a segment only delays them.
                let _ = stream.set_nodelay(true);
                let stream = self.connections.track(stream);
                let (connection, place) = (stream.connection(), client.place());
                let task = tasks.spawn(async move {
                    serve_connection(stream, thread, peer, connections).await;
                    drop((slot, client));
                });
                let handle = self.connections.register(connection, task.abort_handle());
                service.clients.set_handle(place, handle);
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
    async fn acquire_slot(&self, is_free_soon: bool) -> Option<OwnedSemaphorePermit> {
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
async fn flush_now_and_then(thread: Arc<ListenerThread>) {
    loop {
        sleep(FLUSH).await;
        thread.flush();
    }
}

/// Returns once new connections are to be refused, also when nobody is left to say so.
async fn closing(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}
