//! The connection of one attempt. It goes to the checked addresses and to no other.

use std::{fmt::Display, net::SocketAddr, sync::Arc};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::Host;

use crate::{outcome::Failure, webhook_url::literal};

/// The number of checked addresses of a host that are tried.
const MAX_TRIED: usize = 8;

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
    use std::{net::TcpListener, time::Duration};

    use super::*;

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_refuses() {
        let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let stream = dial(&[refusing, address], deadline).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        let refused = dial(&[refusing], deadline).await.unwrap_err();
        assert_eq!(refused, Failure::again("no connection: connection refused"));
    }
}
