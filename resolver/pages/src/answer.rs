//! Answers with a page, and the headers that all pages have.

use askama::Template;
use hyper::{
    StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
        STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};
use web::{Answer, HTML, answer, empty};

use crate::Renderer;

/// Everything comes from this host, and nothing is inline. A picture may be part of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The policy of the password form: its answer redirects to the link's target, and browsers apply
/// `form-action` to redirects too.
const POLICY_OF_PASSWORDS: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
    base-uri 'none'; frame-ancestors 'none'";
/// Two years, for this host alone: those below it are not of this service.
const HSTS: &str = "max-age=63072000";

pub(crate) fn page(renderer: &Renderer, status: StatusCode, page: &impl Template) -> Answer {
    let text = match page.render() {
        Ok(text) => text,
        Err(error) => {
            // Templates are checked by the compiler, and write to memory.
            tracing::error!(error = &error as &dyn std::error::Error, "write a page");
            return empty(StatusCode::INTERNAL_SERVER_ERROR);
        }
    };
    let mut answer = answer(status, HTML, text);
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (VARY, "accept-language, cookie, accept"),
    ];
    let hsts = renderer.hsts.then_some((STRICT_TRANSPORT_SECURITY, HSTS));
    for (name, value) in fixed.into_iter().chain(hsts) {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Lets the forms of a page lead to the target of a link.
pub(crate) fn leading_away(mut answer: Answer) -> Answer {
    let policy = HeaderValue::from_static(POLICY_OF_PASSWORDS);
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    answer
}

pub(crate) fn redirect(status: StatusCode, to: &str) -> Answer {
    let mut answer = empty(status);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let to = HeaderValue::try_from(links::location(to)).unwrap_or(HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, to);
    answer
}

/// Answers with a body that is no page and is not kept, such as a table to download.
pub(crate) fn file(content_type: &'static str, bytes: Vec<u8>) -> Answer {
    unkept(answer(StatusCode::OK, content_type, bytes))
}

/// Marks an answer that is no page: it is not kept, and is what its type says.
pub(crate) fn unkept(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
