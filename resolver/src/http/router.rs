//! Routes the requests of the public listener.

use api::rest;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{ALLOW, HeaderValue},
};
use redirect::{Visitor, fallback_page, pixel, qr_code, robots, unlock};
use web::{Answer, TEXT, answer, empty};

use super::ListenerThread;

/// Returns whether the answer to a request begins before its body has ended.
pub(super) fn is_streamed(request: &Request<Incoming>) -> bool {
    rest::is_bulk(request.method(), request.uri().path())
}

pub(super) async fn route(thread: &ListenerThread, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let ListenerThread { service, redirects, .. } = thread;
    let path = request.uri().path();
    if path == "/rest" || path.starts_with("/rest/") {
        return rest::route(&service.api, visitor.client, request).await;
    }
    if path == rest::HUB {
        return rest::hub(&service.api, visitor.client, request).await;
    }
    if *request.method() == Method::POST && unlock::is_form(&request) {
        return unlock::unlock(redirects, visitor, request).await;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "expected GET or HEAD\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path {
        "/" => fallback_page::home(redirects, visitor, &request),
        "/robots.txt" => robots::show(&service.redirector, redirect::host(&request)).await,
        "/favicon.ico" => empty(StatusCode::NO_CONTENT),
        path if qr_code::link_of(path).is_some() => qr_code::draw(redirects, visitor, &request).await,
        path if pixel::link_of(path).is_some() => pixel::show(redirects, visitor, &request).await,
        _ => redirect::follow(redirects, visitor, &request).await,
    }
}
