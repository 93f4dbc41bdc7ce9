//! gRPC channels to servers, with TLS or without.

use std::{error::Error, io};

use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// Opens a channel, which connects with its first call. An address that begins with `https` is
/// reached with TLS, for which `tls` is needed.
pub fn channel(endpoint: &Endpoint, tls: Option<&ClientTls>) -> Channel {
    if endpoint.uri().scheme_str() != Some("https") {
        return endpoint.connect_lazy();
    }
    let tls = tls.cloned();
    endpoint.connect_with_connector_lazy(tower::service_fn(move |uri: Uri| {
        let tls = tls.clone();
        async move {
            let tls = tls.ok_or_else(|| io::Error::other("no authorities are known for https"))?;
            let host = uri.host().unwrap_or_default();
            let port = uri.port_u16().unwrap_or(443);
            let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(TokioIo::new(tls.connect(host, stream).await?))
        }
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
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    tls::is_local_host(host.trim_matches(['[', ']']))
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
    fn reasons_are_one_line_without_repetition() {
        let inner = io::Error::other("the certificate has expired");
        let middle = io::Error::other(inner);
        let outer = io::Error::new(io::ErrorKind::InvalidData, middle);
        assert_eq!(reasons(&outer), "the certificate has expired");
    }
}
