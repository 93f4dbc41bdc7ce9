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
//! has a share (`limits::Connections`).

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
    thread,
    time::Duration,
};

use daemon::Liveness;
use limits::{OpenConnection, TimedStream};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::coop::unconstrained,
    time::{sleep, timeout},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{ListenerThread, PublicService, connection::serve_connection};

/// The length of the accept queue of each thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
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
    let _timeouts = service.connections.enforce_timeouts();
    let mut ended = Vec::new();
    for (index, socket) in listeners.sockets.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (service, phase) = (Arc::clone(&service), phase.clone());
        let beats = liveness.add(format!("listener-{index}"));
        let (done, waiting) = tokio::sync::oneshot::channel::<io::Result<()>>();
        thread::Builder::new().name(format!("listener-{index}")).spawn(move || {
            let thread = Arc::new(ListenerThread::new(service, index));
            let acceptor = Acceptor { thread, phase };
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
    phase: watch::Receiver<Phase>,
}

impl Acceptor {
    async fn run(self, socket: StdListener) -> io::Result<()> {
        let listener = TcpListener::from_std(socket)?;
        let tasks = TaskTracker::new();
        let flushing = AbortOnDropHandle::new(tokio::spawn(flush_now_and_then(Arc::clone(&self.thread))));
        let _delivering = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self.thread.wakeups).deliver()));
        let connections = &self.thread.service.connections;
        let mut phase = self.phase.clone();
        loop {
            tokio::select! {
                () = closing(&mut phase) => break,
                accepted = connections.accept(&listener) => self.serve(accepted, &tasks),
            }
        }
        connections.close_gracefully();
        // Closing the socket would reset the connections that the kernel has accepted already. A
        // yield in between would look like the end of the queue.
        let next = || timeout(Duration::ZERO, unconstrained(connections.accept(&listener)));
        while let Ok(accepted) = next().await {
            self.serve(accepted, &tasks);
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

    fn serve(&self, (socket, open): (TcpStream, OpenConnection), tasks: &TaskTracker) {
        let (thread, connection) = (Arc::clone(&self.thread), open.connection().clone());
        let task = tasks.spawn(serve_connection(TimedStream::of_socket(socket, open), thread));
        connection.set_task(task.abort_handle());
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
