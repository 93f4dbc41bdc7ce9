//! The answer that redirects a visitor: its status, its location, and how long clients may keep it.

use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue, LOCATION},
};
use web::{Answer, empty};

/// Returns the `Cache-Control` value of redirects with this status, which limits how long clients
/// keep them. Returns `None` for statuses that clients do not cache.
pub fn cache_control(status: StatusCode) -> Option<&'static str> {
    // A permanent redirect that browsers kept forever could never be edited.
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT)
        .then_some("private,max-age=30")
}

pub(crate) fn redirect(status: StatusCode, target: HeaderValue) -> Answer {
    let mut redirect = empty(status);
    redirect.headers_mut().insert(LOCATION, target);
    if let Some(value) = cache_control(status) {
        redirect.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(value));
    }
    redirect
}
