//! The HTTP client of the tests, which returns every response as it is.
//!
//! Redirects are not followed, since they are under test. Proxy settings of the machine are
//! ignored. Each server's handle has its own client: a pooled connection is driven by the runtime
//! it was opened on, and every test has its own runtime.

use std::time::Duration;

use anyhow::Context;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// The time limit for a response. It is above every deadline that the daemons promise, so that a
/// test sees their response and not its own timeout.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// The time after which the client drops an idle connection. It is below the servers' idle timeout:
/// a request that crosses a server's close fails, and that failure would be the test's own.
const IDLE_WITHIN: Duration = Duration::from_secs(4);

/// Builds a client with the tests' settings.
///
/// # Errors
/// Returns an error if the operating system lacks something that the client needs.
pub fn client() -> anyhow::Result<Client> {
    let builder = Client::builder().redirect(Policy::none()).no_proxy().pool_idle_timeout(IDLE_WITHIN);
    builder.connect_timeout(CONNECT_WITHIN).timeout(ANSWER_WITHIN).build().context("build an HTTP client")
}

/// A complete HTTP response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text; invalid UTF-8 is replaced.
    pub body: String,
}

impl Answer {
    /// Sends a request and reads the whole response. Any status counts as a response.
    ///
    /// # Errors
    /// Returns an error if there is no complete response.
    pub async fn to(request: RequestBuilder) -> anyhow::Result<Self> {
        let response = request.send().await.context("send a request")?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.context("read a response's body")?;
        Ok(Self { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Returns the value of a header; `None` if it is absent or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the response itself if its status is 2xx.
    ///
    /// # Errors
    /// Returns an error for any other status; the message contains the body.
    pub fn success(self) -> anyhow::Result<Self> {
        anyhow::ensure!(self.is_success(), "answered {}: {}", self.status, self.body);
        Ok(self)
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// Returns an error if the body is not JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("parse as JSON: {}", self.body))
    }
}

/// Returns a text field of a JSON object.
///
/// # Errors
/// Returns an error if the field is absent or not text.
pub fn text_field(json: &Value, field: &str) -> anyhow::Result<String> {
    let value = json.get(field).and_then(Value::as_str);
    value.map(str::to_owned).with_context(|| format!("no text field {field:?} in {json}"))
}
