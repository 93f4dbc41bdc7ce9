//! gRPC channels to servers, with TLS or without.

use std::{error::Error, io};

use hyper_util::rt::TokioIo;
use tls::{ClientStream, ClientTls};
use tokio::net::TcpStream;
use tokio_util::either::Either;
use tonic::transport::{Channel, Endpoint, Uri};

/// A connection to a server, with TLS or without.
pub type Stream = Either<TcpStream, ClientStream<TcpStream>>;

/// Connects to a server, with TLS if its address begins with `https`, for which `tls` is needed.
pub async fn connect(uri: &Uri, tls: Option<&ClientTls>) -> io::Result<Stream> {
    let tls = match (uri.scheme_str(), tls) {
        (Some("https"), None) => return Err(io::Error::other("no authorities are known for https")),
        (Some("https"), tls) => tls,
        _ => None,
    };
    let (host, port) = target(uri);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => tls.connect(host, stream).await.map(Either::Right),
        None => Ok(Either::Left(stream)),
    }
}

fn target(uri: &Uri) -> (&str, u16) {
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    (uri.host().unwrap_or_default().trim_matches(['[', ']']), uri.port_u16().unwrap_or(usual))
}

/// Opens a channel, which connects with its first call. An address that begins with `https` is
/// reached with TLS, for which `tls` is needed.
pub fn channel(endpoint: &Endpoint, tls: Option<&ClientTls>) -> Channel {
    if endpoint.uri().scheme_str() != Some("https") {
        return endpoint.connect_lazy();
    }
    let tls = tls.cloned();
    endpoint.connect_with_connector_lazy(tower::service_fn(move |uri: Uri| {
        let tls = tls.clone();
        async move { connect(&uri, tls.as_ref()).await.map(TokioIo::new) }
    }))
}

/// Returns an error and its sources in one line. A source that only repeats is left out.
pub fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let reason = error.to_string();
        if !text.ends_with(&reason) {
            text.push_str(": ");
            text.push_str(&reason);
        }
        source = error.source();
    }
    text
}

/// Returns whether a server at a URL can be reached in plaintext without leaving this machine.
pub fn is_local(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| tls::is_local_host(target(&uri).0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_local() {
        for url in ["http://127.0.0.1:7070", "http://[::1]:7070", "http://localhost", "http://127.9.9.9/"] {
            assert!(is_local(url), "{url}");
        }
        for url in ["http://10.0.0.1:7070", "http://issuer-0", "http://localhost.example", "", "http://[::2]"]
        {
            assert!(!is_local(url), "{url}");
        }
    }

    #[test]
    fn servers_are_addressed_by_host_and_port() {
        for (url, host, port) in [
            ("http://etcd-0:2379/", "etcd-0", 2379),
            ("https://etcd-0.etcd:2379", "etcd-0.etcd", 2379),
            ("https://etcd.example", "etcd.example", 443),
            ("http://[::1]:2379", "::1", 2379),
        ] {
            assert_eq!(target(&url.parse().unwrap()), (host, port), "{url}");
        }
    }

    #[test]
    fn reasons_are_one_line_without_repetition() {
        let inner = io::Error::other("the certificate has expired");
        let middle = io::Error::other(inner);
        let outer = io::Error::new(io::ErrorKind::InvalidData, middle);
        assert_eq!(reasons(&outer), "the certificate has expired");
    }
}
