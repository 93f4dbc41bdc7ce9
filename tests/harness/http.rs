//! The HTTP client of the tests: sees every answer as it is.
//!
//! Redirects are not followed, since they are what is tested. Proxy settings of the machine are ignored. Each
//! server's handle has its own client: a pooled connection is driven by the runtime it was opened on, and every
//! test has another runtime.

use std::time::Duration;

use anyhow::Context;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Above every deadline the daemons promise, so that a test sees their answer and not its own impatience.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Below the time after which a server closes an idle connection: a request that crosses such a close fails, and
/// that failure would be the test's own.
const IDLE_WITHIN: Duration = Duration::from_secs(4);

/// A client with the tests' settings.
///
/// # Errors
/// The operating system refuses what a client needs.
pub fn client() -> anyhow::Result<Client> {
    let builder = Client::builder().redirect(Policy::none()).no_proxy().pool_idle_timeout(IDLE_WITHIN);
    builder.connect_timeout(CONNECT_WITHIN).timeout(ANSWER_WITHIN).build().context("build an HTTP client")
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, bytes that are not UTF-8 replaced.
    pub body: String,
}

impl Answer {
    /// Sends a request and reads the whole response. Any status is an answer.
    ///
    /// # Errors
    /// There was no complete response.
    pub async fn to(request: RequestBuilder) -> anyhow::Result<Self> {
        let response = request.send().await.context("send a request")?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.context("read a response's body")?;
        Ok(Self { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// One header's value; `None` when it is absent or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Passes a 2xx on.
    ///
    /// # Errors
    /// Any other status; the message shows the body.
    pub fn success(self) -> anyhow::Result<Self> {
        anyhow::ensure!(self.is_success(), "answered {}: {}", self.status, self.body);
        Ok(self)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// The body is something else.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("parse as JSON: {}", self.body))
    }
}

/// One text field of a JSON object.
///
/// # Errors
/// The field is absent or not text.
pub fn text_field(json: &Value, field: &str) -> anyhow::Result<String> {
    let value = json.get(field).and_then(Value::as_str);
    value.map(str::to_owned).with_context(|| format!("no text field {field:?} in {json}"))
}
