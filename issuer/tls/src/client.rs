//! The side that opens connections.

use std::{io, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore, client::WebPkiServerVerifier, crypto::ring, pki_types::ServerName,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{FileRole, HTTP2, TlsError, TlsFiles, files::Contents, reload::Reloaded, verifier::AnyName};

/// How long a server may take for its first bytes after the handshake.
const SPEAKS_WITHIN: Duration = Duration::from_millis(500);

/// A connection to a server.
pub type ClientStream<S> = BufReader<TlsStream<S>>;

/// Required verification of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// It comes from an authority, and names the server.
    Full,
    /// It comes from an authority.
    Authority,
    /// Nothing. The connection is protected from listeners, and not from a server in between.
    Nothing,
}

/// Opens TLS connections, with a certificate from files if there are any.
pub type ClientTls = Reloaded<ClientConfig>;

impl ClientTls {
    /// Reads the files. Without a file of authorities, those of the system count.
    pub fn new(files: TlsFiles, verify: Verify) -> Result<Self, TlsError> {
        Self::start(files, move |files, contents| make(files, contents, verify))
    }

    /// Makes the handshake for HTTP/2 with the server of that name or address. There is no time
    /// limit.
    ///
    /// With TLS 1.3 a server can refuse a client's certificate only when the client's handshake is
    /// done. So this waits for the server's first bytes, which in HTTP/2 need no request (RFC 9113,
    /// section 3.4): otherwise the refusal would show as a connection that breaks during a call.
    pub async fn connect<S>(&self, server: &str, stream: S) -> io::Result<ClientStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let host = server.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let connector = TlsConnector::from(self.config());
        let connecting = connector.with_alpn(vec![HTTP2.to_vec()]).connect(name, stream);
        let mut stream = BufReader::new(connecting.await?);
        // A server that does not speak first may do as it likes.
        if let Ok(spoken) = timeout(SPEAKS_WITHIN, stream.fill_buf()).await
            && spoken?.is_empty()
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(stream)
    }
}

fn make(files: &TlsFiles, contents: &Contents, verify: Verify) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| files.unfit(&error))?;
    let authority = match verify {
        Verify::Nothing => None,
        Verify::Authority | Verify::Full => {
            let roots = files.roots(contents)?.map_or_else(of_the_system, Ok)?;
            let builder = WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
            Some(builder.build().map_err(|error| files.wrong_ca(&error))?)
        }
    };
    let builder = match authority {
        Some(verifier) if verify == Verify::Full => builder.with_webpki_verifier(verifier),
        authority => {
            let algorithms = provider.signature_verification_algorithms;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { authority, algorithms }))
        }
    };
    match files.pair(contents)? {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| files.unfit(&error)),
    }
}

/// Returns the authorities that the system trusts; `SSL_CERT_FILE` names another bundle.
fn of_the_system() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let reason = "the system trusts no authority: name a file of certificates".to_owned();
        return Err(TlsError { role: FileRole::Ca, path: "SSL_CERT_FILE".into(), reason });
    }
    Ok(roots)
}
