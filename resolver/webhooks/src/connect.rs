//! The addresses of a host, and the connection of one attempt, which goes to checked ones only.
//!
//! `getaddrinfo` cannot be interrupted. It runs on a thread of its own, which outlives an attempt
//! that has run out of time; at most [`MAX_UNDER_WAY`] of them exist. A blocking thread of the
//! runtime was rejected: the runtime would wait for it when the process ends.

use std::{
    fmt::Display,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::Arc,
    thread,
};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    net::TcpStream,
    sync::{Semaphore, oneshot},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::Host;

use crate::{outcome::Failure, webhook_url::literal};

/// The number of checked addresses of a host that are tried.
const MAX_TRIED: usize = 8;

/// The number of lookups of a sender that may be under way at once.
pub(crate) const MAX_UNDER_WAY: usize = 64;

fn busy() -> Failure {
    Failure::again("too many lookups of hosts are under way")
}

fn no_address(reason: &str) -> Failure {
    Failure::again(format!("the host has no address: {reason}"))
}

/// Finds the addresses of a name, with a port.
type Find = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Lookups of hosts, so many of which may be under way at once. Clones share the slots.
#[derive(Clone, Debug)]
pub(crate) struct Lookups {
    slots: Arc<Semaphore>,
    /// The system's lookup, except in tests of names whose addresses change.
    find: Find,
}

impl Lookups {
    pub(crate) fn new(most: usize) -> Self {
        let find: Find = |name, port| (name, port).to_socket_addrs().map(Vec::from_iter);
        Self { slots: Arc::new(Semaphore::new(most)), find }
    }

    #[cfg(test)]
    pub(crate) fn with(find: Find) -> Self {
        Self { find, ..Self::new(MAX_UNDER_WAY) }
    }

    /// Resolves a host. The answer has at least one address.
    pub(crate) async fn resolve(
        &self,
        host: &Host<String>,
        port: u16,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, Failure> {
        if let Some(address) = literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let (name, find) = (host.to_string(), self.find);
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| busy())?;
        let (answer, answered) = oneshot::channel();
        let lookup = move || {
            let found = find(&name, port);
            drop(slot);
            // The attempt may have given up.
            let _ = answer.send(found);
        };
        let spawned = thread::Builder::new().name("webhook-lookup".to_owned()).spawn(lookup);
        spawned.map_err(|_| busy())?;
        addresses(answered, deadline).await
    }
}

/// Waits for the answer of a lookup.
async fn addresses(
    answered: oneshot::Receiver<io::Result<Vec<SocketAddr>>>,
    deadline: Instant,
) -> Result<Vec<SocketAddr>, Failure> {
    let late = |_| Failure::again("the time was over while resolving the host");
    match timeout_at(deadline, answered).await.map_err(late)?.map_err(|_| busy())? {
        Ok(found) if found.is_empty() => Err(no_address("found none")),
        Ok(found) => Ok(found),
        Err(error) => Err(no_address(&error.to_string())),
    }
}

/// Tries addresses in turn. Each but the last gets half of the remaining time.
pub(crate) async fn dial(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Failure> {
    let addresses = &addresses[..addresses.len().min(MAX_TRIED)];
    let late = || Failure::again("the time was over while connecting");
    let mut failure = late();
    for (position, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = if position + 1 == addresses.len() { left } else { left / 2 };
        failure = match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => Failure::again(format!("no connection: {}", error.kind())),
            Err(_) => late(),
        };
    }
    Err(failure)
}

/// Negotiates TLS with a host, whose certificate has to be for its name or address.
pub(crate) async fn secure(
    stream: TcpStream,
    host: &Host<String>,
    config: Arc<ClientConfig>,
    deadline: Instant,
) -> Result<TlsStream<TcpStream>, Failure> {
    let failed = |error: &dyn Display| Failure::again(format!("the TLS handshake failed: {error}"));
    let name = match literal(host) {
        Some(address) => ServerName::from(address),
        None => ServerName::try_from(host.to_string()).map_err(|error| failed(&error))?,
    };
    let negotiated = timeout_at(deadline, TlsConnector::from(config).connect(name, stream)).await;
    let late = |_| Failure::again("the time was over while negotiating TLS");
    negotiated.map_err(late)?.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use std::{iter, net::TcpListener, time::Duration};

    use tokio::net::TcpSocket;

    use super::*;

    fn within(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_refuses() {
        let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let deadline = within(60);
        let stream = dial(&[refusing, address], deadline).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        let refused = dial(&[refusing], deadline).await.unwrap_err();
        assert_eq!(refused, Failure::again("no connection: connection refused"));
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_leaves_half_of_the_time_to_the_next() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let silent = socket.listen(1).unwrap();
        let full = silent.local_addr().unwrap();
        // Linux answers no more while its queue of connections to accept is full.
        let connect = || std::net::TcpStream::connect_timeout(&full, Duration::from_millis(200)).ok();
        let _queue: Vec<_> = iter::from_fn(connect).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let deadline = within(2);
        let stream = dial(&[full, address], deadline).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(Instant::now() < deadline, "the next one had its half");
        let late = dial(&[full], within(0)).await.unwrap_err();
        assert_eq!(late, Failure::again("the time was over while connecting"));
    }

    fn name(text: &str) -> Host<String> {
        Host::Domain(text.to_owned())
    }

    #[tokio::test]
    async fn a_name_is_resolved_to_addresses_with_the_port() {
        let lookups = Lookups::new(MAX_UNDER_WAY);
        let found = lookups.resolve(&name("localhost"), 81, within(60)).await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 81), "{found:?}");
        // Longer than a name in DNS can be, so that no server is asked.
        let refused = lookups.resolve(&name(&"x".repeat(300)), 1, within(60)).await.unwrap_err();
        assert!(refused.error.starts_with("the host has no address"), "{refused:?}");
    }

    #[tokio::test]
    async fn a_lookup_beyond_the_limit_is_refused_and_a_literal_address_needs_none() {
        let lookups = Lookups::new(MAX_UNDER_WAY);
        let taken = lookups.slots.try_acquire_many(u32::try_from(MAX_UNDER_WAY).unwrap()).unwrap();
        assert_eq!(lookups.resolve(&name("localhost"), 1, within(60)).await, Err(busy()));
        let host = Host::Ipv4([8, 8, 8, 8].into());
        assert_eq!(lookups.resolve(&host, 443, within(60)).await, Ok(vec![([8, 8, 8, 8], 443).into()]));
        drop(taken);
        assert!(lookups.resolve(&name("localhost"), 1, within(60)).await.is_ok());
    }

    #[tokio::test]
    async fn a_lookup_without_an_answer_ends_at_the_deadline() {
        let (_answer, answered) = oneshot::channel();
        let late = Failure::again("the time was over while resolving the host");
        assert_eq!(addresses(answered, within(0)).await, Err(late));
    }
}
