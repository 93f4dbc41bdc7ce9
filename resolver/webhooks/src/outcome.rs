//! What came of an attempt.
//!
//! 1. Only a status of 2xx is a delivery.
//! 2. A failure once the request is being sent is uncertain: the receiver may have the event. It is
//!    sent again with the same message id.

use std::{
    error::Error as _,
    fmt, io,
    time::{Duration, SystemTime},
};

use hyper::{HeaderMap, StatusCode, header::RETRY_AFTER};

use crate::{policy::RefusedAddress, retry_after, sender::MAX_BODY};

/// An attempt as a delivery log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What came of it.
    pub outcome: Outcome,
    /// The beginning of the answer's body, at most 4 KiB of it, without control characters. Empty
    /// if there was no answer.
    pub excerpt: String,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has the event: a status of 2xx.
    Delivered(StatusCode),
    /// The receiver wants no more events: 410. The webhook is to be disabled.
    Gone,
    /// The request was sent, perhaps in part, and no answer came: the receiver may have the event.
    /// To be sent again.
    Uncertain(Silence),
    /// The receiver does not have the event, or has not accepted it.
    Failed(Reason, RetryAdvice),
}

/// Why there is no answer to a request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// The time limit.
    #[error("no answer came in time: the receiver may have the event")]
    Late,
    /// The connection ended.
    #[error("the connection ended before the answer, and the receiver may have the event: {0}")]
    Broken(io::ErrorKind),
}

/// What an attempt does before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The host is being resolved.
    Resolve,
    /// The connection is being opened.
    Connect,
    /// TLS is being negotiated.
    Handshake,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the host",
            Self::Connect => "connecting",
            Self::Handshake => "negotiating TLS",
        })
    }
}

/// Whether and when a failed attempt is followed by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// When the schedule says.
    OnSchedule,
    /// When the schedule says, but not before this time has passed, as the receiver asks. At most
    /// an hour.
    NotBefore(Duration),
    /// Never, because every attempt would fail in the same way.
    GiveUp,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The URL is of the scheme http, which is no longer allowed.
    #[error("this server does not allow http: use https, or start it with --webhooks http")]
    PlainText,
    /// The body is larger than [`MAX_BODY`].
    #[error("the event has {0} bytes, and may have {MAX_BODY}")]
    BodyTooLarge(usize),
    /// The HTTP client could not write the request.
    #[error("the request cannot be sent: {0}")]
    Unsendable(String),
    /// This process has too many lookups under way.
    #[error("too many lookups of hosts are under way")]
    Busy,
    /// The host has no address.
    #[error("the host has no address: {0}")]
    NoAddress(String),
    /// The host has an address that webhooks may not reach. Nothing was sent.
    #[error(transparent)]
    Address(RefusedAddress),
    /// The time limit, before the request.
    #[error("the time was over while {0}")]
    Timeout(Phase),
    /// The connection could not be opened.
    #[error("no connection: {0}")]
    Connection(io::ErrorKind),
    /// The TLS handshake failed, for example because of the certificate.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// A redirect, 3xx, which is never followed.
    #[error("the receiver answered with the redirect {0}, which is not followed: change the webhook's URL")]
    Redirect(StatusCode),
    /// The receiver asks to slow down: 429 or 503.
    #[error("the receiver answered {0}: it asks for fewer requests")]
    Throttled(StatusCode),
    /// Another status of 4xx.
    #[error("the receiver answered {0}, and not 2xx")]
    ClientError(StatusCode),
    /// Another status of 5xx.
    #[error("the receiver answered {0}, and not 2xx")]
    ServerError(StatusCode),
    /// An answer that is not HTTP, has too large a head, or a status that ends no request.
    #[error("the answer is not HTTP: {0}")]
    BadAnswer(String),
}

impl Outcome {
    /// Creates the outcome of a failure that the schedule is to repeat.
    pub(crate) const fn again(reason: Reason) -> Self {
        Self::Failed(reason, RetryAdvice::OnSchedule)
    }

    /// Returns the outcome that an answer tells.
    pub(crate) fn of_answer(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Self {
        match status.as_u16() {
            200..=299 => Self::Delivered(status),
            300..=399 => Self::again(Reason::Redirect(status)),
            410 => Self::Gone,
            429 | 503 => Self::Failed(Reason::Throttled(status), advice(headers, now)),
            400..=499 => Self::again(Reason::ClientError(status)),
            500..=599 => Self::again(Reason::ServerError(status)),
            _ => Self::again(Reason::BadAnswer(format!("the status {status}"))),
        }
    }

    /// Returns the outcome of a request that ended in an error.
    pub(crate) fn of_error(error: &hyper::Error) -> Self {
        if error.is_parse() {
            return Self::again(Reason::BadAnswer(error.to_string()));
        }
        let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        Self::Uncertain(Silence::Broken(system.map_or(io::ErrorKind::UnexpectedEof, io::Error::kind)))
    }
}

fn advice(headers: &HeaderMap, now: SystemTime) -> RetryAdvice {
    let value = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match value.and_then(|value| retry_after::parse(value, now)) {
        Some(wait) => RetryAdvice::NotBefore(wait),
        None => RetryAdvice::OnSchedule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Outcome {
        Outcome::of_answer(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn each_class_of_status_has_its_outcome() {
        let status = |number| StatusCode::from_u16(number).unwrap();
        for number in [200, 202, 204, 299] {
            assert_eq!(answer(number), Outcome::Delivered(status(number)));
        }
        for (number, reason) in [
            (300, Reason::Redirect as fn(_) -> _),
            (304, Reason::Redirect),
            (399, Reason::Redirect),
            (400, Reason::ClientError),
            (404, Reason::ClientError),
            (499, Reason::ClientError),
            (429, Reason::Throttled),
            (503, Reason::Throttled),
            (500, Reason::ServerError),
            (502, Reason::ServerError),
            (599, Reason::ServerError),
        ] {
            assert_eq!(answer(number), Outcome::again(reason(status(number))));
        }
        assert_eq!(answer(410), Outcome::Gone);
        for number in [101, 600, 999] {
            assert!(matches!(answer(number), Outcome::Failed(Reason::BadAnswer(_), RetryAdvice::OnSchedule)));
        }
    }

    #[test]
    fn only_a_throttled_attempt_waits_as_long_as_the_receiver_asks() {
        let headers = [(RETRY_AFTER, "7200".parse().unwrap())].into_iter().collect();
        for (number, advised) in [
            (429, RetryAdvice::NotBefore(Duration::from_secs(3_600))),
            (503, RetryAdvice::NotBefore(Duration::from_secs(3_600))),
            (500, RetryAdvice::OnSchedule),
        ] {
            let status = StatusCode::from_u16(number).unwrap();
            let outcome = Outcome::of_answer(status, &headers, SystemTime::UNIX_EPOCH);
            assert!(matches!(outcome, Outcome::Failed(_, advice) if advice == advised), "{outcome:?}");
        }
    }
}
