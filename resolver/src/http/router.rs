//! Routes the requests of the public listener.

use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{ALLOW, HeaderValue},
};

use super::{Answer, Desk, Visitor, answer, empty, pages, picture, redirect, rest, robots, stray, unlock};

/// Returns whether the answer to a request begins before its body has ended.
pub(super) fn is_streamed(request: &Request<Incoming>) -> bool {
    rest::is_bulk(request.method(), request.uri().path())
}

pub(super) async fn route(desk: &Desk, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let path = request.uri().path();
    if path == "/rest" || path.starts_with("/rest/") {
        return rest::route(&desk.app, visitor.client, request).await;
    }
    if *request.method() == Method::POST && unlock::is_form(&request) {
        return unlock::unlock(desk, visitor, request).await;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, pages::TEXT, "expected GET or HEAD\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path {
        "/" => stray::base(&desk.app, redirect::host(&request)),
        "/robots.txt" => robots::show(&desk.app, redirect::host(&request)).await,
        "/favicon.ico" => empty(StatusCode::NO_CONTENT),
        path if picture::link_of(path).is_some() => picture::draw(desk, visitor, &request).await,
        _ => redirect::follow(desk, visitor, &request).await,
    }
}
