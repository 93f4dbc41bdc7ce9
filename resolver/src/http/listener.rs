//! Accepting connections: one single-threaded runtime per core, all on the same address (SO_REUSEPORT).
//!
//! Stopping without cutting anybody off takes three steps. While *draining*, everything is served, but each answer closes its
//! connection, so that clients come back elsewhere. Then *closing*: what waits in the accept queue is still taken, the sockets
//! are closed, idle connections ended and the others let finish, until a deadline.

use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener as StdListener},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use hyper::{
    body::Incoming,
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use super::{App, router};

/// Connections at a time, over all threads.
const CONNECTIONS_MAX: usize = 16_384;
/// Connections that may wait to be accepted, per thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
/// How long a client may take to send a request's head.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// The head of a request, and so the longest header.
const HEAD_BYTES: usize = 16 * 1024;
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
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut ended = Vec::new();
    for (index, socket) in listeners.sockets.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let door = Door { app: Arc::clone(&app), phase: phase.clone(), slots: Arc::clone(&slots) };
        let (done, waiting) = tokio::sync::oneshot::channel::<io::Result<()>>();
        thread::Builder::new().name(format!("listener-{index}")).spawn(move || {
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
    app: Arc<App>,
    phase: watch::Receiver<Phase>,
    slots: Arc<Semaphore>,
}

impl Door {
    async fn keep(mut self, socket: StdListener) -> io::Result<()> {
        let listener = TcpListener::from_std(socket)?;
        let connections = TaskTracker::new();
        loop {
            let mut phase = self.phase.clone();
            tokio::select! {
                () = closing(&mut phase) => break,
                accepted = listener.accept() => self.greet(accepted, &connections).await,
            }
        }
        // What the kernel has accepted already would be cut off by closing the socket.
        while let Ok(accepted) = timeout(Duration::ZERO, listener.accept()).await {
            self.greet(accepted, &connections).await;
        }
        drop(listener);
        connections.close();
        if timeout(CLOSE_DEADLINE, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "cut connections that did not finish in time");
        }
        Ok(())
    }

    async fn greet(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>, connections: &TaskTracker) {
        match accepted {
            Ok((stream, _)) => {
                let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
                    self.app.metrics.connections_refused.increment(1);
                    return;
                };
                let (app, phase) = (Arc::clone(&self.app), self.phase.clone());
                connections.spawn(async move {
                    converse(stream, app, phase).await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: spinning would make it worse.
                tracing::warn!(%error, "accept on the public listener");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Serves one connection to its end; once closing, to the end of the request under way.
async fn converse(stream: TcpStream, app: Arc<App>, mut phase: watch::Receiver<Phase>) {
    // Answers are written whole: waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let app = Arc::clone(&app);
        async move {
            let mut answer = router::route(&app, request).await;
            if app.is_draining() {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = closing(&mut phase) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection");
    }
}

/// Returns once new connections are to be refused, also when nobody is left to say so.
async fn closing(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}
