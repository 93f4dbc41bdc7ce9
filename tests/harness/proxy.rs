//! A TCP proxy that injects faults: delay, stall, loss, reset and refusal, per direction and while
//! connections are open.
//!
//! 1. Memory is bounded: at most 64 chunks of 16 KiB wait in each direction of a connection, then
//!    the sender blocks.
//! 2. No receiver ever sees a stream with a hole, which TCP cannot produce. So a connection that
//!    lost bytes to [`Flow::Cut`] is reset as soon as the cut heals; until then it is silent.
//! 3. A stranded connection stays silent for good, even about its end, while new ones pass. This is
//!    what a router leaves behind that has forgotten its connections. Only a side that probes the
//!    connection notices.
//! 4. Dropping the proxy ends its listener and all its connections.
//!
//! Packet filters and `netem` were rejected: they need root and kernel modules that test machines
//! often lack.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{net, wait};

mod lane;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The direction of a byte stream through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server behind the proxy.
    ToServer,
    /// From the server behind the proxy to the client.
    ToClient,
}

/// The treatment of the bytes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Forwards bytes at once, including those held back before.
    Pass,
    /// Forwards each byte after this delay, at an unchanged rate.
    Delay(Duration),
    /// Reads and forwards nothing, so the sender's buffers fill. Nothing is lost: the stream
    /// continues after a change.
    Stall,
    /// Reads and discards everything, including the end of the stream, as in a partition without
    /// resets.
    Cut,
}

/// The receivers of the proxy's controls, one set per connection. The proxy holds the senders, so
/// its drop ends the connection's tasks.
#[derive(Clone, Debug)]
struct Switches {
    to_server: watch::Receiver<Flow>,
    to_client: watch::Receiver<Flow>,
    reset: watch::Receiver<()>,
    strand: watch::Receiver<()>,
}

/// The outcome of the two directions of a connection.
enum End {
    Clean,
    Broken,
    Stranded,
}

/// A proxy in front of a server, or of several that share their faults.
#[derive(Debug)]
pub struct Proxy {
    /// The addresses that it listens on, each with that of the server behind it.
    doors: Vec<(SocketAddr, SocketAddr)>,
    to_server: watch::Sender<Flow>,
    to_client: watch::Sender<Flow>,
    reset: watch::Sender<()>,
    strand: watch::Sender<()>,
    /// The accepting tasks, which own the listeners; none while connections are refused. The lock
    /// is tokio's because it is held across an await while the tasks end.
    accepting: Mutex<Vec<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts a proxy on a port of its own. The server need not be running yet.
    ///
    /// # Errors
    /// Returns an error if the port cannot be bound.
    pub async fn start(upstream: SocketAddr) -> anyhow::Result<Self> {
        Self::start_before([upstream]).await
    }

    /// Starts a proxy in front of several servers, on a port for each of them.
    ///
    /// # Errors
    /// Returns an error if a port cannot be bound.
    pub async fn start_before(upstreams: impl IntoIterator<Item = SocketAddr>) -> anyhow::Result<Self> {
        let doors = upstreams.into_iter().map(|upstream| Ok((net::free_addr()?, upstream)));
        let proxy = Self {
            doors: doors.collect::<anyhow::Result<_>>()?,
            to_server: watch::Sender::new(Flow::Pass),
            to_client: watch::Sender::new(Flow::Pass),
            reset: watch::Sender::new(()),
            strand: watch::Sender::new(()),
            accepting: Mutex::default(),
        };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// Returns the address that the proxy listens on for its first server.
    pub fn addr(&self) -> SocketAddr {
        self.doors[0].0
    }

    /// Returns the addresses that the proxy listens on, in the order of its servers.
    pub fn addrs(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.doors.iter().map(|(addr, _)| *addr)
    }

    /// Returns [`Self::addr`] as an HTTP URL, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// Sets the flow of one direction, for open and for future connections.
    pub fn set(&self, direction: Direction, flow: Flow) {
        match direction {
            Direction::ToServer => self.to_server.send_replace(flow),
            Direction::ToClient => self.to_client.send_replace(flow),
        };
    }

    /// Sets the flow of both directions.
    pub fn set_both(&self, flow: Flow) {
        self.set(Direction::ToServer, flow);
        self.set(Direction::ToClient, flow);
    }

    /// Resets all open connections on both sides, which see "connection reset by peer".
    pub fn reset_all(&self) {
        self.reset.send_replace(());
    }

    /// Strands all open connections: neither side receives anything from the other again, and
    /// neither is notified.
    pub fn strand_all(&self) {
        self.strand.send_replace(());
    }

    /// Refuses new connections from now on, like a machine without a listener. Open connections
    /// continue.
    pub async fn refuse(&self) {
        for accepting in self.accepting.lock().await.drain(..) {
            accepting.abort();
            // The result is always "cancelled". The listener is closed after this await.
            drop(accepting.await);
        }
    }

    /// Accepts new connections again.
    ///
    /// # Errors
    /// Returns an error if another process has taken the port meanwhile.
    pub async fn accept(&self) -> anyhow::Result<()> {
        let mut accepting = self.accepting.lock().await;
        if !accepting.is_empty() {
            return Ok(());
        }
        for (addr, upstream) in &self.doors {
            let listener = TcpListener::bind(addr).await.with_context(|| format!("listen on {addr}"))?;
            let switches = Switches {
                to_server: self.to_server.subscribe(),
                to_client: self.to_client.subscribe(),
                reset: self.reset.subscribe(),
                strand: self.strand.subscribe(),
            };
            accepting.push(tokio::spawn(accept_all(listener, *upstream, switches)));
        }
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.get_mut().iter().for_each(JoinHandle::abort);
    }
}

async fn accept_all(listener: TcpListener, upstream: SocketAddr, mut switches: Switches) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                // A reset or stranding from before this connection must not affect it.
                switches.reset.mark_unchanged();
                switches.strand.mark_unchanged();
                tokio::spawn(serve(client, upstream, switches.clone()));
            }
            // Most likely out of file descriptors: an immediate retry would only spin.
            Err(_) => sleep(wait::POLL_INTERVAL).await,
        }
    }
}

async fn serve(mut client: TcpStream, upstream: SocketAddr, mut switches: Switches) {
    let Ok(Ok(mut server)) = timeout(CONNECT_WITHIN, TcpStream::connect(upstream)).await else {
        return reset(client);
    };
    let is_set = client.set_nodelay(true).is_ok() && server.set_nodelay(true).is_ok();
    let end = if is_set { carry_both(&mut client, &mut server, &mut switches).await } else { End::Broken };
    if matches!(end, End::Stranded) {
        // Both sockets stay open and unread until the proxy, which holds the sender, is dropped.
        while switches.strand.changed().await.is_ok() {}
    }
    if !matches!(end, End::Clean) {
        reset(client);
        reset(server);
    }
}

async fn carry_both(client: &mut TcpStream, server: &mut TcpStream, switches: &mut Switches) -> End {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let there = lane::carry(switches.to_server.clone(), from_client, to_server);
    let back = lane::carry(switches.to_client.clone(), from_server, to_client);
    tokio::select! {
        ended = async { tokio::try_join!(there, back) } => if ended.is_ok() { End::Clean } else { End::Broken },
        _ = switches.reset.changed() => End::Broken,
        Ok(()) = switches.strand.changed() => End::Stranded,
    }
}

/// Closes a connection with RST instead of FIN.
fn reset(stream: TcpStream) {
    // Fails only on a socket that is already closed.
    drop(stream.set_zero_linger());
}
