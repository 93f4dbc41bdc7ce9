//! Requests of other methods than GET and HEAD. A link whose redirects keep the method (307, 308)
//! takes them: the client sends them again to the target, with their body, which is not read here.

use hyper::{
    Method, Request, StatusCode,
    header::{ACCESS_CONTROL_REQUEST_METHOD, HeaderName, ORIGIN},
};
use links::Link;
use web::{Answer, cors};

use crate::{
    Redirector, ThreadContext, Visitor,
    asked::Asked,
    follow::{find, follow, status_of},
    request::{bytes, host},
    unlock::is_form,
};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Answers a request for a link whose redirects keep the method, and the preflight of a script that
/// may follow the links of this domain. Returns `None` for any other request.
pub async fn forward<B>(thread: &ThreadContext, visitor: Visitor, request: &Request<B>) -> Option<Answer> {
    let is_kept = matches!(
        *request.method(),
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::OPTIONS
    );
    if !is_kept || is_own_form(request) {
        return None;
    }
    let redirector = &*thread.redirector;
    let is_preflight = *request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if is_preflight && !redirector.domain_cache.is_cross_origin(host(request)) {
        return None;
    }
    let asked = Asked::name(visitor.client, request.uri().path(), host(request));
    let takes_all = match find(redirector, &asked).await {
        Ok(found) => takes_all_methods(redirector, &found.link),
        // An outage or a limit is the business of the request that follows.
        Err(refusal) if is_preflight => refusal.visit.is_none(),
        // What says something of the link, or that there is none, is the business of GET.
        Err(refusal) => return refusal.visit.is_none().then_some(*refusal.answer),
    };
    if is_preflight {
        // Browsers follow no redirect of one, so that it would use up a visit for nothing.
        let methods = if takes_all { cors::ALL_METHODS } else { "GET,HEAD" };
        return Some(cors::preflight(request.headers(), methods));
    }
    if takes_all { Some(follow(thread, visitor, request).await) } else { None }
}

/// Returns whether the redirects of a link keep the method, and no password stands before them.
fn takes_all_methods(redirector: &Redirector, link: &Link) -> bool {
    let status = status_of(redirector, link);
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
        && link.password().is_none()
}

/// Returns whether a request may be the form that asks for a password: that of a page on this
/// origin. Otherwise a link whose password was removed meanwhile would send the password on.
fn is_own_form<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let is_of_page = match bytes(headers, &SEC_FETCH_SITE) {
        Some(site) => site == b"same-origin",
        // Browsers that do not send it name the origin. Programs do neither.
        None => headers.contains_key(ORIGIN),
    };
    *request.method() == Method::POST && is_form(request) && is_of_page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_may_be_our_own_if_it_comes_from_a_page_here() {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let (here, there) = (("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site"));
        let origin = ("origin", "https://a.example");
        for (method, headers, is_own) in [
            (Method::POST, vec![kind, here, origin], true),
            (Method::POST, vec![kind, origin], true),
            (Method::POST, vec![kind, there, origin], false),
            (Method::POST, vec![kind], false),
            (Method::POST, vec![("content-type", "application/json"), here], false),
            (Method::PUT, vec![kind, here], false),
        ] {
            let mut request = Request::builder().method(method).uri("/abc123");
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            assert_eq!(is_own_form(&request.body(()).unwrap()), is_own, "{headers:?}");
        }
    }
}
