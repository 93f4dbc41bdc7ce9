//! The header `Retry-After` (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

/// The longest wait that a receiver may ask for.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// Parses a wait in seconds or a date. Returns at most [`MAX_WAIT`], zero for a date that is over,
/// and `None` for anything else.
pub(crate) fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only digits that are too many for the type fail to parse.
        value.parse().map_or(MAX_WAIT, Duration::from_secs)
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        date.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_parsed_and_limited() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("3600", Some(3_600)),
            ("3601", Some(3_600)),
            ("99999999999999999999999999", Some(3_600)),
            ("Sun, 06 Nov 1994 08:51:07 GMT", Some(90)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(3_600)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(parse(value, now), seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}
