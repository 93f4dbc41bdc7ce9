//! Request ids (`X-Request-Id`), which correlate the logs of a proxy, of a client and of this
//! server.
//!
//! 1. An id in the request is sent back if it is valid: a single header of at most 128 visible
//!    ASCII characters. Otherwise an id is generated, as Shlink does.
//! 2. Redirects that are answered without hyper (`redirect::fast_path`) have no id. The header
//!    would lengthen each of them by up to half, and their ids are never looked up.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use hyper::{HeaderMap, StatusCode, header::HeaderValue};

use crate::Answer;

const NAME: &str = "x-request-id";
const LEN_MAX: usize = 128;

/// The id of a request.
pub struct RequestId(HeaderValue);

impl RequestId {
    /// Returns the id in a request's headers if it is valid, or generates one.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(NAME).iter();
        match (given.next(), given.next()) {
            (Some(name), None) if is_fit(name.as_bytes()) => Self(name.clone()),
            _ => Self::new(),
        }
    }

    /// Generates an id: sixteen hexadecimal digits of this process and sixteen of this request. Ids
    /// are unique, not secret.
    fn new() -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Without random numbers the ids of two processes may be equal, which does no harm.
        let process = PROCESS.get_or_init(|| getrandom::u64().unwrap_or_default());
        let number = u128::from(*process) << 64 | u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
        let name = HeaderValue::from_str(&format!("{number:032x}"));
        Self(name.unwrap_or(HeaderValue::from_static("-")))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Adds the id to an answer. Logs an internal error with the id, because no client can fix its
    /// cause.
    pub fn set_on(&self, answer: &mut Answer) {
        if answer.status() == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(request_id = ?self.0, "a request was answered with an internal error");
        }
        answer.headers_mut().insert(NAME, self.0.clone());
    }
}

fn is_fit(name: &[u8]) -> bool {
    (1..=LEN_MAX).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(given: &[&str]) -> String {
        let given = given.iter().map(|name| (NAME.parse().unwrap(), HeaderValue::from_str(name).unwrap()));
        let RequestId(name) = RequestId::of(&given.collect());
        name.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_fit_name_is_sent_back_and_any_other_is_replaced_by_one_of_its_own() {
        let longest = "x".repeat(LEN_MAX);
        for name in ["foobar", "a,b;c=\"d\"", longest.as_str()] {
            assert_eq!(told(&[name]), name);
        }
        let mut made = Vec::new();
        for given in [&[][..], &[""], &["a b"], &["a\tb"], &["a", "b"], &[&"x".repeat(LEN_MAX + 1)]] {
            made.push(told(given));
        }
        assert!(made.iter().all(|name| name.len() == 32 && !name.contains('x')), "{made:?}");
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 6);
    }
}
