//! Outcomes of attempts.
//!
//! 1. Only a status of 2xx is a delivery.
//! 2. After a failure once the request is being sent, the receiver may have the event. It is sent
//!    again with the same message id.

use std::{
    error::Error as _,
    io,
    time::{Duration, SystemTime},
};

use hyper::{HeaderMap, StatusCode, header::RETRY_AFTER};

/// The longest wait that a receiver may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// An attempt as a delivery log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Outcome of the attempt.
    pub outcome: Outcome,
    /// The first 4 KiB of the answer's body, without control characters; empty for none.
    pub excerpt: String,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has the event: a status of 2xx.
    Delivered(StatusCode),
    /// The receiver wants no more events: 410. The webhook is to be disabled.
    Gone,
    /// The receiver has not accepted the event. It may have it.
    Failed(Failure),
}

/// Why an attempt failed, and whether another one follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status of the answer, if there was one.
    pub status: Option<StatusCode>,
    /// The reason, for the webhook's owner.
    pub error: String,
    /// The next attempt comes when the schedule says, but not before this time has passed, as the
    /// receiver asks: at most an hour. `None` if every attempt would fail in the same way.
    pub retry: Option<Duration>,
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Self { outcome: Outcome::Failed(failure), excerpt: String::new() }
    }
}

impl Failure {
    /// A failure that the schedule is to repeat.
    pub fn again(error: impl Into<String>) -> Self {
        Self { status: None, error: error.into(), retry: Some(Duration::ZERO) }
    }

    /// A failure that every attempt would end in.
    pub(crate) fn for_good(error: impl Into<String>) -> Self {
        Self { retry: None, ..Self::again(error) }
    }

    pub(crate) fn of_error(error: &hyper::Error) -> Self {
        if error.is_parse() {
            return Self::again(format!("the answer is not HTTP: {error}"));
        }
        let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        let kind = system.map_or(io::ErrorKind::UnexpectedEof, io::Error::kind);
        let ended = "the connection ended before the answer, and the receiver may have the event";
        Self::again(format!("{ended}: {kind}"))
    }
}

impl Outcome {
    pub(crate) fn of_answer(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Self {
        let (error, asked) = match status.as_u16() {
            200..=299 => return Self::Delivered(status),
            410 => return Self::Gone,
            300..=399 => {
                let hint = "which is not followed: change the webhook's URL";
                (format!("the receiver answered with the redirect {status}, {hint}"), None)
            }
            429 | 503 => {
                let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let wait = asked.and_then(|value| retry_after(value, now));
                (format!("the receiver answered {status}: it asks for fewer requests"), wait)
            }
            400..=599 => (format!("the receiver answered {status}, and not 2xx"), None),
            _ => return Self::Failed(Failure::again(format!("the answer is not HTTP: the status {status}"))),
        };
        Self::Failed(Failure { status: Some(status), error, retry: Some(asked.unwrap_or_default()) })
    }
}

/// Parses a wait in seconds or a date (RFC 9110, section 10.2.3). Returns at most [`MAX_WAIT`],
/// zero for a date that is over, and `None` for anything else.
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
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

    fn answer(status: u16, headers: &HeaderMap) -> Outcome {
        Outcome::of_answer(StatusCode::from_u16(status).unwrap(), headers, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn each_class_of_status_has_its_outcome() {
        let answer = |status| answer(status, &HeaderMap::new());
        for number in [200, 202, 204, 299] {
            assert_eq!(answer(number), Outcome::Delivered(StatusCode::from_u16(number).unwrap()));
        }
        for (numbers, reason) in [
            (&[300_u16, 304, 399][..], "redirect"),
            (&[400, 404, 499, 500, 502, 599], "and not 2xx"),
            (&[429, 503], "fewer requests"),
            (&[101, 600, 999], "not HTTP"),
        ] {
            for number in numbers {
                let Outcome::Failed(failure) = answer(*number) else { panic!("{number}") };
                let status = Some(*number).filter(|_| reason != "not HTTP");
                assert_eq!(failure.status.map(|status| status.as_u16()), status);
                assert!(failure.error.contains(reason), "{number}: {failure:?}");
                assert_eq!(failure.retry, Some(Duration::ZERO));
            }
        }
        assert_eq!(answer(410), Outcome::Gone);
    }

    #[test]
    fn only_a_throttled_attempt_waits_as_long_as_the_receiver_asks() {
        let headers = [(RETRY_AFTER, "7200".parse().unwrap())].into_iter().collect();
        for (number, seconds) in [(429, 3_600), (503, 3_600), (500, 0)] {
            let Outcome::Failed(failure) = answer(number, &headers) else { panic!("{number}") };
            assert_eq!(failure.retry, Some(Duration::from_secs(seconds)), "{number}");
        }
    }

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
            assert_eq!(retry_after(value, now), seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}
