//! Answers of JSON, and times in them.

use dto::DateTime;
use hyper::StatusCode;
use jiff::Timestamp;
use serde::Serialize;

use super::problem::Problem;
use web::{Answer, answer};

pub(super) const JSON: &str = "application/json";

pub(super) fn json(body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => answer(StatusCode::OK, JSON, bytes),
        Err(error) => {
            tracing::error!(%error, "write JSON");
            Problem::INTERNAL.into_answer()
        }
    }
}

/// Formats a time as RFC 3339 with `+00:00` and whole seconds, as PHP's `DateTimeInterface::ATOM`
/// does.
pub(super) fn atom(time: Timestamp) -> DateTime {
    DateTime(time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string())
}
