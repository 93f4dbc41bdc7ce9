//! Times in requests and forms.

use jiff::{Timestamp, tz::TimeZone};
use links::TimeError;

use crate::{Field, values::Checked};

/// Reads a time of a request, which is in `zone` without an offset of its own
/// ([`links::read_time`]).
pub fn read_time(text: &str, zone: &TimeZone) -> Checked<Timestamp> {
    let time = links::read_time(text, zone).map_err(|error| match error {
        TimeError::Form => Field::ValidUntil.expected(),
        error => error.to_string(),
    })?;
    // In the resolution of the store, so that the stored time equals the requested one.
    Timestamp::from_millisecond(time.as_millisecond()).map_err(|_| Field::ValidUntil.expected())
}
