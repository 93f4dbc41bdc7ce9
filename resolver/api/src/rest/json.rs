//! Answers of JSON.

use hyper::StatusCode;
use serde::Serialize;

use super::problem::Problem;
use web::{Answer, answer};

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";

/// Answers with JSON.
pub(super) fn json(body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => answer(StatusCode::OK, JSON, bytes),
        Err(error) => {
            tracing::error!(%error, "write JSON");
            Problem::INTERNAL.into_answer()
        }
    }
}
