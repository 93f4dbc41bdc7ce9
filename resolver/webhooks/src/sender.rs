//! One delivery attempt over HTTP.
//!
//! 1. Every attempt has a client of its own: no connection, cookie or TLS session passes from one
//!    webhook to another, and no connection is used after its address was checked for another
//!    attempt.
//! 2. The client's parts for proxies are left out, not only switched off.
//! 3. Time limits hold for the attempt as a whole, from the lookup to the last byte of the excerpt.
//!
//! `ureq` warns that the traits of its transports may change in any release. They are the only way
//! to choose the address to connect to; a change would show when this file is compiled.

use std::{
    io::Read,
    sync::Arc,
    time::{Duration, SystemTime},
};

use ureq::{
    Agent, Body,
    config::Config,
    http::{Response, header},
    tls::{PemItem, RootCerts, TlsConfig, parse_pem},
    unversioned::transport::{Connector, RustlsConnector},
};

use crate::{
    lookup::{CheckedHost, Lookups},
    outcome::{Attempt, Outcome, Reason, RetryAdvice},
    policy::Policy,
    signature::SignedHeaders,
    socket::{Dial, Progress, Ready},
    webhook_url::WebhookUrl,
};

/// The largest body of a request in bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// The number of bytes of an answer's body that are kept.
const MAX_EXCERPT: u64 = 4 * 1024;
/// The largest head of an answer in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// The size of a connection's buffers in bytes. A head has to fit.
const BUFFER: usize = 2 * MAX_HEAD;
/// The longest time limit. Longer ones are cut to it.
const MAX_TOTAL: Duration = Duration::from_secs(60);
/// The value of the header `User-Agent`.
const USER_AGENT: &str = concat!("Shortmint-Webhooks/", env!("CARGO_PKG_VERSION"));

/// The time limits of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the end of the lookup until a connection is open, TLS included.
    pub connect: Duration,
    /// The whole attempt: the lookup, the connection, the request, and the answer with as much of
    /// its body as is read. At most 60 s.
    pub total: Duration,
}

impl Default for Timeouts {
    /// Returns 5 s for the connection and 15 s in total.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), total: Duration::from_secs(15) }
    }
}

/// The certificate authorities that may sign certificates of receivers.
#[derive(Clone, Debug)]
pub struct Roots(RootCerts);

/// Why a bundle of certificates was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// Not PEM.
    #[error("expected certificates in PEM: {0}")]
    Pem(String),
    /// PEM without a certificate.
    #[error("expected at least one certificate in PEM, found none")]
    Empty,
}

impl Roots {
    /// Returns the authorities of Mozilla's list, as it was when this program was built.
    #[must_use]
    pub const fn mozilla() -> Self {
        Self(RootCerts::WebPki)
    }

    /// Returns exactly the authorities of a PEM bundle, without those of Mozilla's list. For an
    /// authority of one's own beside the public ones, the bundle has to have both.
    ///
    /// # Errors
    /// Returns an error if the text is not PEM or has no certificate.
    pub fn from_pem(pem: &[u8]) -> Result<Self, RootsError> {
        let mut certificates = Vec::new();
        for item in parse_pem(pem) {
            if let PemItem::Certificate(found) = item.map_err(|error| RootsError::Pem(error.to_string()))? {
                certificates.push(found);
            }
        }
        if certificates.is_empty() { Err(RootsError::Empty) } else { Ok(Self(certificates.into())) }
    }
}

/// Makes delivery attempts. It is shared by all threads that do.
#[derive(Debug)]
pub struct Sender {
    policy: Arc<Policy>,
    config: Config,
    lookups: Lookups,
}

impl Sender {
    /// Creates a sender.
    #[must_use]
    pub fn new(policy: Policy, roots: Roots) -> Self {
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .tls_config(TlsConfig::builder().root_certs(roots.0).build())
            .user_agent(USER_AGENT)
            .max_response_header_size(MAX_HEAD)
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .max_idle_connections(0)
            .build();
        Self { policy: Arc::new(policy), config, lookups: Lookups::default() }
    }

    /// Returns the policy, with which URLs are to be parsed.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Makes one attempt: sends the JSON body with the signed headers, and reads the answer. Blocks
    /// the thread until then, at most for the total time limit.
    #[must_use]
    pub fn deliver(
        &self,
        url: &WebhookUrl,
        headers: &SignedHeaders,
        body: &[u8],
        timeouts: Timeouts,
    ) -> Attempt {
        if let Some(reason) = self.refusal(url, body) {
            return Attempt::without_answer(Outcome::Failed(reason, RetryAdvice::GiveUp));
        }
        let progress = Arc::default();
        match self.exchange(url, headers, body, timeouts, &progress) {
            Ok(response) => answered(response),
            Err(error) => Attempt::without_answer(Outcome::of_error(error, progress.phase())),
        }
    }

    fn refusal(&self, url: &WebhookUrl, body: &[u8]) -> Option<Reason> {
        if url.is_plain_text() && !self.policy.allow_http {
            return Some(Reason::PlainText);
        }
        (body.len() > MAX_BODY).then_some(Reason::BodyTooLarge(body.len()))
    }

    fn exchange(
        &self,
        url: &WebhookUrl,
        headers: &SignedHeaders,
        body: &[u8],
        timeouts: Timeouts,
        progress: &Arc<Progress>,
    ) -> Result<Response<Body>, ureq::Error> {
        let agent = self.agent(url, progress);
        let total = timeouts.total.min(MAX_TOTAL);
        let mut request = agent
            .post(url.as_str())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .config()
            .timeout_connect(Some(timeouts.connect.min(total)))
            .timeout_global(Some(total))
            .build();
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        request.send(body)
    }

    fn agent(&self, url: &WebhookUrl, progress: &Arc<Progress>) -> Agent {
        let resolver = CheckedHost {
            host: url.host().clone(),
            port: url.port(),
            policy: Arc::clone(&self.policy),
            lookups: self.lookups.clone(),
        };
        let connector =
            Dial(Arc::clone(progress)).chain(RustlsConnector::default()).chain(Ready(Arc::clone(progress)));
        Agent::with_parts(self.config.clone(), connector, resolver)
    }
}

impl Attempt {
    const fn without_answer(outcome: Outcome) -> Self {
        Self { outcome, excerpt: String::new() }
    }
}

fn answered(mut response: Response<Body>) -> Attempt {
    let outcome = Outcome::of_answer(response.status(), response.headers(), SystemTime::now());
    Attempt { outcome, excerpt: excerpt(response.body_mut()) }
}

/// Reads the beginning of a body. Control characters become spaces: databases refuse some of them,
/// and terminals obey others.
fn excerpt(body: &mut Body) -> String {
    let mut bytes = Vec::new();
    // The status has decided the outcome. A body that breaks off is kept as far as it came.
    body.as_reader().take(MAX_EXCERPT).read_to_end(&mut bytes).ok();
    let text = String::from_utf8_lossy(&bytes);
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

#[cfg(test)]
mod receiver;
#[cfg(test)]
mod tests;
