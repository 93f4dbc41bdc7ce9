//! Accepts connections: one single-threaded runtime per core, all on the same address
//! (SO_REUSEPORT).
//!
//! A stop cuts off no request that ends within the deadline. It takes two phases after normal
//! service. While `PublicService::draining` is set, requests are served, but each answer closes its
//! connection, so that clients reconnect to another resolver. Once the listeners close, the
//! connections in the accept queue are still taken. Then the sockets are closed, idle connections
//! ended, and the others have until the deadline to finish.
//!
//! The descriptors and the memory of the process bound the number of connections, and each client
//! has a share (`limits::Connections`).

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use daemon::TaskSupervisor;
use limits::{OpenConnection, TimedStream};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    task::coop::unconstrained,
    time::{sleep, timeout},
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use crate::{ListenerThread, PublicService, connection::serve_connection};

/// The length of the accept queue of each thread; the kernel's own limit applies too.
const BACKLOG: i32 = 4_096;
/// The deadline for connections to finish after the listeners have begun to close.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// Binds one socket per thread.
///
/// # Errors
/// Returns an error if the address is in use or does not belong to this machine.
pub fn bind(address: SocketAddr, threads: usize) -> io::Result<Vec<StdListener>> {
    // SO_REUSEPORT alone would let a second process of the same user take half of the connections
    // unnoticed.
    drop(StdListener::bind(address)?);
    let first = bind_one(address)?;
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..threads {
        sockets.push(bind_one(address)?);
    }
    Ok(sockets)
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

/// Serves on every socket, each on its own thread, until `closing` is cancelled. Returns when all
/// threads have ended.
///
/// # Errors
/// Returns an error if a thread cannot be started, or a socket cannot be read.
pub async fn serve(
    sockets: Vec<StdListener>,
    service: Arc<PublicService>,
    closing: CancellationToken,
    supervisor: TaskSupervisor,
) -> io::Result<()> {
    let _timeouts = service.connections.enforce_timeouts();
    let mut ended = Vec::new();
    for (index, socket) in sockets.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // A token of each thread's own, because the threads would share a lock.
        let (service, closing) = (Arc::clone(&service), closing.child_token());
        let beats = supervisor.add(format!("listener-{index}"));
        let (done, waiting) = tokio::sync::oneshot::channel::<io::Result<()>>();
        thread::Builder::new().name(format!("listener-{index}")).spawn(move || {
            let thread = Arc::new(ListenerThread::new(service, index));
            let served = runtime.block_on(async {
                let _beating = AbortOnDropHandle::new(tokio::spawn(beats.run()));
                accept(&thread, socket, &closing).await
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

/// Accepts connections on one thread, until `closing` is cancelled.
async fn accept(
    thread: &Arc<ListenerThread>,
    socket: StdListener,
    closing: &CancellationToken,
) -> io::Result<()> {
    let listener = TcpListener::from_std(socket)?;
    let tasks = TaskTracker::new();
    let flushing = AbortOnDropHandle::new(tokio::spawn(flush_now_and_then(Arc::clone(thread))));
    let _delivering = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&thread.wakeups).deliver()));
    let connections = &thread.service.connections;
    let mut is_closing = pin!(closing.cancelled());
    loop {
        tokio::select! {
            () = &mut is_closing => break,
            accepted = connections.accept(&listener) => serve_one(thread, accepted, &tasks),
        }
    }
    connections.close_gracefully();
    // Closing the socket would reset the connections that the kernel has accepted already. A
    // yield in between would look like the end of the queue.
    let next = || timeout(Duration::ZERO, unconstrained(connections.accept(&listener)));
    while let Ok(accepted) = next().await {
        serve_one(thread, accepted, &tasks);
    }
    drop(listener);
    tasks.close();
    if timeout(CLOSE_DEADLINE, tasks.wait()).await.is_err() {
        tracing::warn!(connections = tasks.len(), "cut connections that did not finish in time");
    }
    drop(flushing);
    thread.redirects.flush();
    Ok(())
}

fn serve_one(thread: &Arc<ListenerThread>, (socket, open): (TcpStream, OpenConnection), tasks: &TaskTracker) {
    let connection = open.connection().clone();
    let stream = TimedStream::of_socket(socket, open);
    let task = tasks.spawn(serve_connection(stream, Arc::clone(thread)));
    connection.set_task(task.abort_handle());
}

/// Hands over the visits and counts of a thread at an interval, so that they are not held up on an
/// idle thread.
async fn flush_now_and_then(thread: Arc<ListenerThread>) {
    loop {
        sleep(thread.service.redirector.visits.flush_every()).await;
        thread.redirects.flush();
    }
}
