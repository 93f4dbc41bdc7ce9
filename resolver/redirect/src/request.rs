//! Requests as hyper reads them, in the form of the fast path.

use hyper::{
    Method, Request,
    header::{ACCEPT_LANGUAGE, DNT, HOST, HeaderMap, HeaderName, HeaderValue, REFERER, USER_AGENT},
};

use crate::fast_path::{RequestHead, prefetch};

/// Global Privacy Control: the visitor asks not to be tracked if it is `1`.
const SEC_GPC: HeaderName = HeaderName::from_static("sec-gpc");

pub(crate) fn request_head<B>(request: &Request<B>) -> RequestHead<'_> {
    let (uri, headers) = (request.uri(), request.headers());
    let asks = |name| headers.get_all(name).iter().any(|value| value == "1");
    RequestHead {
        is_head: *request.method() == Method::HEAD,
        path_and_query: uri.path_and_query().map_or(uri.path(), |whole| whole.as_str()),
        path: uri.path(),
        query: uri.query(),
        host: host(request),
        user_agent: bytes(headers, &USER_AGENT),
        referer: bytes(headers, &REFERER),
        accept_language: bytes(headers, &ACCEPT_LANGUAGE),
        is_prefetch: is_prefetch(headers),
        is_opted_out: asks(DNT) || asks(SEC_GPC),
    }
}

/// Returns whether a browser fetches ahead, before a person has decided to follow the link.
pub(crate) fn is_prefetch(headers: &HeaderMap) -> bool {
    let mut lines = prefetch::HEADERS.iter().flat_map(|name| headers.get_all(name));
    lines.any(|value| prefetch::is_named_in(value.as_bytes()))
}

/// Returns the host of a request: that of its target URI, or else its `Host` header.
pub fn host<B>(request: &Request<B>) -> Option<&str> {
    let named = || request.headers().get(HOST)?.to_str().ok();
    request.uri().authority().map(|authority| authority.as_str()).or_else(named)
}

/// Returns the path of the link to which this suffix is added; `None` if it is not.
#[inline]
pub fn path_before<'a>(path: &'a str, suffix: &str) -> Option<&'a str> {
    path.strip_suffix(suffix).filter(|link| link.len() > 1)
}

/// Returns the value of a header. Of a repeated header it is the first.
pub(crate) fn bytes<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}
