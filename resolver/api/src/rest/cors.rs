//! Cross-origin requests. Web clients run on other origins and send `X-Api-Key`, so every call has
//! a preflight.

use hyper::{
    HeaderMap, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, HeaderValue, ORIGIN,
    },
};

use web::{Answer, empty};

/// Lets scripts of any origin read the answer. Keys are in a header, never in a cookie.
pub(super) fn allow(answer: &mut Answer) {
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}

/// Answers a preflight (OPTIONS). It names the methods of all calls: one that a path does not have
/// is answered like an unknown path.
pub(super) fn preflight(asked: &HeaderMap) -> Answer {
    let mut answer = empty(StatusCode::NO_CONTENT);
    let methods = HeaderValue::from_static("GET,POST,PUT,PATCH,DELETE");
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
