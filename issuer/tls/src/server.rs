//! The side that accepts connections.

use std::{io, sync::Arc, time::Duration};

use rustls::{
    ServerConfig,
    crypto::ring,
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{Certificate, Identity, TlsError, TlsFiles, files::Contents, reload::Reloaded};

/// How long, and for how many bytes, a refused client is listened to before it is cut off.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);
const REFUSED_BYTES: u64 = 64 * 1024;

/// Accepts TLS connections with a certificate from files.
pub type ServerTls = Reloaded<ServerConfig>;

impl ServerTls {
    /// Reads the files. With authorities among them, every client has to show a certificate of one
    /// of these; without, none is asked for. `protocols` are for ALPN, the preferred one first.
    pub fn new(files: TlsFiles, protocols: &'static [&'static [u8]]) -> Result<Self, TlsError> {
        Self::start(files, move |files, contents| make(files, contents, protocols))
    }

    /// Waits for the client's handshake. There is no time limit.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let accepting = TlsAcceptor::from(self.config()).accept(stream).into_fallible();
        match accepting.await {
            Ok(stream) => Ok(stream),
            Err((error, stream)) => {
                let _ = timeout(REFUSED_WITHIN, hang_up(stream)).await;
                Err(error)
            }
        }
    }
}

/// Returns whom the certificate of a connection's client names, if it had to show one.
pub fn identity<S>(stream: &TlsStream<S>) -> Option<Identity> {
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first())?;
    Some(Identity(Certificate::read(certificate).names.into()))
}

/// Ends a refused connection so that the client reads why, and is not just reset.
async fn hang_up<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(REFUSED_BYTES), &mut tokio::io::sink()).await.map(|_| ())
}

fn make(files: &TlsFiles, contents: &Contents, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| files.unfit(&error))?;
    let builder = match files.roots(contents)? {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| files.wrong_ca(&error))?)
        }
    };
    let Some((chain, key)) = files.pair(contents)? else {
        return Err(files.unfit(&rustls::Error::NoCertificatesPresented));
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| files.unfit(&error))?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    if files.ca.is_some() {
        // A resumed session would skip the verification of the client's certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}
