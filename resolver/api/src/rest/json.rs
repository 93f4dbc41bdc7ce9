//! Answers of JSON, and times in them.

use dto::DateTime;
use hyper::StatusCode;
use jiff::{Timestamp, fmt::temporal::DateTimePrinter, tz::Offset};
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
    // Not `strftime`, which would interpret its format for each of a page's thousands of visits.
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
    DateTime(PRINTER.timestamp_with_offset_to_string(&time, Offset::UTC))
}
