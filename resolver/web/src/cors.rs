//! Cross-origin requests. Web clients of the API run on other origins and send `X-Api-Key`, so
//! every call has a preflight. Scripts follow the links of a domain that allows it.

use hyper::{
    HeaderMap, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, HeaderValue, ORIGIN,
    },
};

use crate::answer::{Answer, empty};

/// Lets scripts of any origin read the answer. Keys are in a header, never in a cookie.
pub fn allow(answer: &mut Answer) {
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}

/// The methods of all calls of the API: one that a path does not have is answered like an unknown
/// path. Links whose redirects keep the method take the same.
pub const ALL_METHODS: &str = "GET,POST,PUT,PATCH,DELETE";

/// Answers a preflight (OPTIONS) with these methods.
pub fn preflight(asked: &HeaderMap, methods: &'static str) -> Answer {
    let mut answer = empty(StatusCode::NO_CONTENT);
    let methods = HeaderValue::from_static(methods);
    let headers = answer.headers_mut();
    headers.insert(ALLOW, methods.clone());
    if asked.contains_key(ORIGIN) {
        let echoed = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, echoed.unwrap_or_else(|| HeaderValue::from_static("")));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
        allow(&mut answer);
    }
    answer
}
