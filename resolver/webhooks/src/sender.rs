//! One delivery attempt over HTTP.
//!
//! 1. Every attempt has a connection of its own: none is used after its address was checked for
//!    another attempt, and no cookie or TLS session passes from one webhook to another.
//! 2. The lookup, the connection and the request are called here one after the other. A client with
//!    a pool was rejected: it follows redirects, reads proxies from the environment or chooses
//!    addresses itself, and all of that would have to be switched off.

mod page;

use std::{
    fmt::Display,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
    header,
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    connect::{Lookups, MAX_UNDER_WAY, dial, secure},
    outcome::{Attempt, Failure, Outcome},
    policy::Policy,
    signature::SignedHeaders,
    webhook_url::{PLAIN_TEXT, Refused, WebhookUrl},
};

pub use page::PageReader;

/// The largest body of a request in bytes.
const MAX_BODY: usize = 256 * 1024;
/// The number of bytes of an answer's body that are kept.
const MAX_EXCERPT: usize = 4 * 1024;
/// The largest head of an answer in bytes.
const MAX_HEAD: usize = 16 * 1024;
const USER_AGENT: &str = concat!("Shortmint-Webhooks/", env!("CARGO_PKG_VERSION"));

/// The reason of an attempt whose answer did not come in time.
const LATE: &str = "no answer came in time: the receiver may have the event";

/// The certificate authorities that may sign certificates of receivers.
#[derive(Clone, Debug)]
pub struct Roots(RootCertStore);

impl Roots {
    /// Returns the authorities of Mozilla's list, as it was when this program was built.
    pub fn mozilla() -> Self {
        Self(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }

    /// Returns exactly the authorities of a PEM bundle, without those of Mozilla's list. For an
    /// authority of one's own beside the public ones, the bundle has to have both.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Refused> {
        let mut roots = RootCertStore::empty();
        for found in CertificateDer::pem_slice_iter(pem) {
            let no_pem = |error: &dyn Display| Refused(format!("expected certificates in PEM: {error}"));
            let certificate = found.map_err(|error| no_pem(&error))?;
            roots.add(certificate).map_err(|error| no_pem(&error))?;
        }
        match roots.is_empty() {
            true => Err(Refused("expected at least one certificate in PEM, found none".to_owned())),
            false => Ok(Self(roots)),
        }
    }
}

/// Makes delivery attempts.
#[derive(Debug)]
pub struct Sender {
    /// The policy, with which URLs are to be parsed.
    pub policy: Policy,
    /// How long the connection may take after the lookup, TLS included.
    connect_within: Duration,
    /// How long an attempt may take, from the lookup to what is read of the answer's body.
    total: Duration,
    tls: Arc<ClientConfig>,
    lookups: Lookups,
}

impl Sender {
    /// Creates a sender.
    pub fn new(policy: Policy, roots: Roots) -> Self {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has all versions of TLS");
        let mut tls = tls.with_root_certificates(roots.0).with_no_client_auth();
        tls.resumption = Resumption::disabled();
        let lookups = Lookups::new(MAX_UNDER_WAY);
        let (connect_within, total) = (Duration::from_secs(5), Duration::from_secs(15));
        Self { policy, connect_within, total, tls: Arc::new(tls), lookups }
    }

    /// Makes one attempt: sends the JSON body with the signed headers, and reads the answer, within
    /// 15 s.
    pub async fn deliver(&self, url: &WebhookUrl, headers: &SignedHeaders, body: &[u8]) -> Attempt {
        let deadline = Instant::now() + self.total;
        let answered = match self.request(url, headers, body) {
            Ok(request) => self.exchange(url, request, deadline).await,
            Err(failure) => Err(failure),
        };
        match answered {
            Err(failure) => failure.into(),
            Ok((response, _connection)) => Attempt {
                outcome: Outcome::of_answer(response.status(), response.headers(), SystemTime::now()),
                excerpt: excerpt(response.into_body(), deadline).await,
            },
        }
    }

    /// Returns the request, or why every attempt to send it would fail. Its target has no host, as
    /// proxies alone want it.
    fn request(
        &self,
        url: &WebhookUrl,
        headers: &SignedHeaders,
        body: &[u8],
    ) -> Result<Request<Full<Bytes>>, Failure> {
        if url.is_plain_text && !self.policy.allow_http {
            return Err(Failure::for_good(PLAIN_TEXT));
        }
        if body.len() > MAX_BODY {
            let found = body.len();
            return Err(Failure::for_good(format!("the event has {found} bytes, and may have {MAX_BODY}")));
        }
        let unsendable =
            |error: &dyn Display| Failure::for_good(format!("the request cannot be sent: {error}"));
        let uri = Uri::try_from(url.as_str()).map_err(|error| unsendable(&error))?;
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::post(target)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONNECTION, "close");
        for (name, value) in headers {
            request = request.header(*name, value.as_str());
        }
        request.body(Full::new(Bytes::copy_from_slice(body))).map_err(|error| unsendable(&error))
    }

    async fn exchange(
        &self,
        url: &WebhookUrl,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        let addresses = self.lookups.resolve(&url.host, url.port, deadline).await?;
        self.policy.check(&addresses).map_err(|refused| Failure::again(refused.to_string()))?;
        let connected_by = deadline.min(Instant::now() + self.connect_within);
        let stream = dial(&addresses, connected_by).await?;
        if url.is_plain_text {
            return send(stream, request, deadline).await;
        }
        let tls = secure(stream, &url.host, Arc::clone(&self.tls), connected_by).await?;
        send(tls, request, deadline).await
    }
}

/// The task that moves the bytes of a connection. It ends when this is dropped.
type Connection = JoinSet<hyper::Result<()>>;

/// Sends a request over a new connection, and waits for the head of the answer.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    deadline: Instant,
) -> Result<(Response<Incoming>, Connection), Failure> {
    let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|error| Failure::of_error(&error))?;
    let mut task = Connection::new();
    task.spawn(connection);
    match timeout_at(deadline, sender.send_request(request)).await {
        Err(_) => Err(Failure::again(LATE)),
        Ok(answered) => Ok((answered.map_err(|error| Failure::of_error(&error))?, task)),
    }
}

/// Reads the beginning of a body. Control characters become spaces: databases refuse some of them,
/// and terminals obey others.
async fn excerpt(mut body: Incoming, deadline: Instant) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_EXCERPT {
        // The status has decided the outcome. A body that breaks off is kept as far as it came.
        let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await else { break };
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    bytes.truncate(MAX_EXCERPT);
    let text = String::from_utf8_lossy(&bytes);
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

#[cfg(test)]
mod receiver;
#[cfg(test)]
mod tests;
