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
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
    thread,
    time::Duration,
};

use daemon::{Liveness, Seldom};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use web::connection_timeouts::ThreadConnections;

use super::{ListenerThread, PublicService, connection::serve_connection};

/// The length of the accept queue of each thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
/// The time to wait for the slot of a connection that was ended to make room.
const ROOM_WITHIN: Duration = Duration::from_millis(100);
/// The pause after a failed accept, which usually means that no descriptor is left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
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
pub(crate) async fn serve(
    listeners: PublicListeners,
    service: Arc<PublicService>,
    phase: watch::Receiver<Phase>,
    liveness: Liveness,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(service.connections_max));
    let (full, mut ended) = (Arc::new(Seldom::default()), Vec::new());
    for (index, socket) in listeners.sockets.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (service, phase) = (Arc::clone(&service), phase.clone());
        let (slots, full) = (Arc::clone(&slots), Arc::clone(&full));
        let beats = liveness.add(format!("listener-{index}"));
        let (done, waiting) = tokio::sync::oneshot::channel::<io::Result<()>>();
        thread::Builder::new().name(format!("listener-{index}")).spawn(move || {
            let thread = Arc::new(ListenerThread::new(service, index));
            let acceptor = Acceptor { thread, connections: Arc::default(), phase, slots, full };
            let served = runtime.block_on(async {
                let _beating = AbortOnDropHandle::new(tokio::spawn(beats.run()));
                acceptor.run(socket).await
            });
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

/// Accepts connections on one thread.
struct Acceptor {
    thread: Arc<ListenerThread>,
    connections: Arc<ThreadConnections>,
    phase: watch::Receiver<Phase>,
    slots: Arc<Semaphore>,
    /// Limits how often full slots or exhausted descriptors are logged.
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
        // Closing the socket would reset the connections that the kernel has accepted already.
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
                if service.tls.is_some() && !service.clients.may_shake_hands(peer) {
                    service.metrics.connections_refused.increment(1);
                    return;
                }
                let Some(client) = service.clients.connect(peer) else {
                    service.metrics.connections_refused.increment(1);
                    return;
                };
                let Some(slot) = self.acquire_slot(client.has_ended_others()).await else {
                    service.metrics.connections_refused.increment(1);
                    return;
                };
                let (thread, connections) = (Arc::clone(&self.thread), Arc::clone(&self.connections));
                // Answers are written whole, so waiting to fill a segment would only delay them.
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
                // The process is most likely out of file descriptors, and retrying at once would
                // make it worse.
                if let Some(times) = self.full.happened() {
                    tracing::warn!(%error, times, "accept on the public listener");
                }
                self.connections.close_idlest();
                sleep(NO_DESCRIPTOR).await;
            }
        }
    }

    /// Acquires a slot for a connection. When all slots are taken, the idlest connections of this
    /// thread make room. The kernel spreads connections evenly, so they are about the idlest of
    /// all. A client whose own idlest connection was ended for this one takes no slot from other
    /// clients.
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

/// Hands over the visits and counts of a thread at an interval, so that they are not held up on an
/// idle thread.
async fn flush_now_and_then(thread: Arc<ListenerThread>) {
    loop {
        sleep(thread.redirects.flush_every()).await;
        thread.flush();
    }
}

/// Waits for [`Phase::Closing`]. Returns as well if the sender of phases is gone.
async fn closing(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}
