//! What every answer of the API has.

use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue},
};
use web::Answer;

use super::cors;
use crate::Api;

/// Counts and completes an answer.
pub(super) fn finish(api: &Api, mut answer: Answer, is_cross_origin: bool) -> Answer {
    if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        api.metrics.unavailable.increment(1);
    }
    // Answers depend on a key that shared caches do not know (RFC 9111, section 3.5, knows
    // Authorization only).
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if is_cross_origin {
        cors::allow(&mut answer);
    }
    answer
}
