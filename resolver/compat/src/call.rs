//! One call: its key, its fields, and what it holds meanwhile.

use std::{net::IpAddr, sync::Arc, time::Duration};

use api::{AT_ONCE, Api, AuthError, is_still_granted, rest::discard};
use app::AppError;
use http_body_util::{BodyExt as _, Limited};
use hyper::{
    HeaderMap, Method, StatusCode, Uri,
    body::{Body as _, Incoming},
    header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT},
    http::request::Parts,
};
use limits::{Account, Held, from_client};
use links::api_key::Grant;
use percent_encoding::percent_decode_str;
use tokio::time::{Instant, timeout};
use web::{Answer, charge};

use crate::{failure::Failure, fields::Fields};

/// Maximum length of a body in bytes: half of what one client may hold, because the fields are
/// copies of it.
const BODY_BYTES: usize = 8 * 1024;
/// How much memory a byte of a body may take: a field of a form, or a value of JSON.
const BYTES_PER_BYTE: (u64, u64) = (2, 32);
const BODY_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Call {
    pub(crate) api: Arc<Api>,
    pub(crate) client: IpAddr,
    pub(crate) method: Method,
    pub(crate) query: Fields,
    pub(crate) body: Fields,
    uri: Uri,
    headers: HeaderMap,
    /// The key, and the place of the call among those under way with it.
    by: Option<(Grant, Held)>,
    held: Option<Held>,
    /// Whether the key may have been revoked while the body arrived.
    is_late: bool,
}

impl Call {
    pub(crate) fn new(api: &Arc<Api>, client: IpAddr, head: Parts) -> Self {
        Self {
            api: Arc::clone(api),
            client,
            method: head.method,
            query: Fields::of_form(head.uri.query().unwrap_or_default().as_bytes()),
            body: Fields::default(),
            uri: head.uri,
            headers: head.headers,
            by: None,
            held: None,
            is_late: false,
        }
    }

    /// Returns the text of a header; empty without it.
    pub(crate) fn header(&self, name: &str) -> String {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim().to_owned()
    }

    /// Returns what follows this beginning in the path, without a slash at its end.
    pub(crate) fn path_after(&self, beginning: &str) -> &str {
        let path = self.uri.path().trim_start_matches('/');
        let path = path.strip_prefix(beginning.trim_start_matches('/')).unwrap_or_default();
        path.strip_suffix('/').unwrap_or(path)
    }

    /// Checks the key, within the limits of the REST API.
    pub(crate) async fn authenticate(&mut self, key: &str) -> Result<(), Failure> {
        let grant = api::sign_in(&self.api, self.client, key.as_bytes()).await?;
        let place = self.api.budgets.calls.take(Account::Key(grant.id.0), 1)?;
        self.by = Some((grant, place));
        // What was read before is no longer a stranger's.
        self.held = None;
        Ok(())
    }

    /// Returns the key of the call.
    pub(crate) fn by(&self) -> Result<&Grant, Failure> {
        self.by.as_ref().map(|(grant, _)| grant).ok_or(Failure::INTERNAL)
    }

    /// Reads the body, onto the account of the key or, before that is known, of the client. Without
    /// a key only a form is read.
    pub(crate) async fn read(&mut self, body: &mut Incoming) -> Result<(), Failure> {
        if body.is_end_stream() {
            return Ok(());
        }
        let (account, per_byte) = match &self.by {
            Some((grant, _)) => (Account::Key(grant.id.0), BYTES_PER_BYTE.1),
            None => (Account::client(self.client), BYTES_PER_BYTE.0),
        };
        let length = self.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let expected = length.unwrap_or(BODY_BYTES);
        if expected > BODY_BYTES {
            return Err(Failure::Body(StatusCode::PAYLOAD_TOO_LARGE));
        }
        let begun = Instant::now();
        self.held = Some(self.api.budgets.bodies.take(account, per_byte * expected as u64)?);
        let read = timeout(BODY_TIME, from_client(Limited::new(body, expected).collect())).await;
        let read = read.map_err(|_| Failure::Body(StatusCode::REQUEST_TIMEOUT))?;
        let bytes = read.map_err(|_| Failure::Body(StatusCode::PAYLOAD_TOO_LARGE))?.to_bytes();
        self.is_late = self.by.is_some() && begun.elapsed() >= AT_ONCE;
        // Some clients send a body with a GET, and mean nothing by it.
        if self.method == Method::GET {
            return Ok(());
        }
        let kind = self.header(CONTENT_TYPE.as_str()).to_ascii_lowercase();
        if kind.starts_with("application/x-www-form-urlencoded") {
            self.body = Fields::of_form(&bytes);
        } else if kind.starts_with("multipart/") {
            return Err(Failure::Body(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        } else if self.by.is_some() {
            self.body = Fields::of_json(&bytes).ok_or(Failure::Body(StatusCode::BAD_REQUEST))?;
        }
        Ok(())
    }

    /// Leaves the body of a refused call to the connection's end. A client that expects a go-ahead
    /// has not sent it.
    pub(crate) async fn leave_unread(&self, body: &mut Incoming) {
        if !self.headers.contains_key(EXPECT) {
            discard(body).await;
        }
    }

    /// Checks again a key whose body took its time. On the daemon's runtime only.
    pub(crate) async fn check_again(&self) -> Result<(), Failure> {
        if self.is_late && !is_still_granted(&self.api, self.by()?).await.map_err(AppError::from)? {
            return Err(Failure::Auth(AuthError::WrongKey));
        }
        Ok(())
    }

    /// Counts a long answer as the key's until it was sent.
    pub(crate) fn charge(&self, mut answer: Answer) -> Result<Answer, Failure> {
        if let Some((grant, _)) = &self.by {
            charge(&self.api.budgets, Account::Key(grant.id.0), &mut answer)?;
        }
        Ok(answer)
    }
}

/// Decodes a part of a path.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
