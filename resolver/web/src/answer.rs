//! Constructors of HTTP answers, and marks on them.

use std::time::Duration;

use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use limits::{Account, Budgets, ExceededShare};

use crate::body::Body;

/// The content type of pages.
pub const HTML: &str = "text/html; charset=utf-8";
/// The content type of plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// The delay before a refusal is sent. A client would follow a prompt refusal with its next attempt
/// at once, and take processor time from other clients.
pub const HELD_BACK: Duration = Duration::from_secs(1);

/// An HTTP response, as every handler returns it.
pub type Answer = Response<Body>;

/// Builds an answer with a body.
pub fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Body::whole(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Builds an answer without a body.
pub fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// Charges a long answer to an account until the client has read it. The error is the share that
/// has no room for it.
pub fn charge(budgets: &Budgets, account: Account, answer: &mut Answer) -> Result<(), ExceededShare> {
    let bytes = answer.body().len() as u64;
    budgets.widen(&mut answer.body_mut().held, account, bytes)
}

/// The extension that marks an answer as held back.
#[derive(Clone, Copy)]
struct HeldBack;

/// Marks a refusal to be sent after [`HELD_BACK`]. It holds no resources meanwhile, and its
/// connection may be closed to make room for another.
#[must_use]
pub fn hold_back(mut answer: Answer) -> Answer {
    answer.extensions_mut().insert(HeldBack);
    answer
}

/// Returns whether an answer has to wait for [`HELD_BACK`].
pub fn is_held_back(answer: &Answer) -> bool {
    answer.extensions().get::<HeldBack>().is_some()
}

/// Adds a `Retry-After` header that asks the client to retry after a second.
#[must_use]
pub fn retry_later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
