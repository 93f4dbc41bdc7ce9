//! Times as answers show them.

use dto::DateTime;
use jiff::Timestamp;

/// Formats a time as RFC 3339 with `+00:00` and whole seconds, as PHP's `DateTimeInterface::ATOM`
/// does.
pub(super) fn atom(time: Timestamp) -> DateTime {
    DateTime(time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string())
}
