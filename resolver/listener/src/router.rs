//! Routes the requests of the public listener.

use api::rest;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Incoming,
    header::{ACCEPT, ACCEPT_LANGUAGE, ALLOW, CACHE_CONTROL, COOKIE, HeaderValue},
};
use pages::{below, is_page};
use redirect::{Visitor, app_links, fallback_page, host, path_before, pixel, qr_code, robots, unlock};
use web::{Answer, TEXT, answer, empty, request_durations::route_of};

use crate::ListenerThread;

const NO_API: &str = "redirects only: send calls of the API to a process with --role api";

/// Answers a request, and marks the answer with its route.
pub(super) async fn route(thread: &ListenerThread, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let is_of_api = is_api(request.uri().path()) || thread.service.compat.takes(request.uri().path());
    let name = match request.uri().path() {
        _ if is_of_api => &thread.names.other,
        path if is_link(path) => &thread.names.redirect,
        _ => &thread.names.page,
    };
    // Unless the API answers, a visitor's page may follow, which depends on these.
    let reader = (!is_of_api).then(|| (of_reader(request.headers()), request.uri().clone()));
    let base = thread.service.redirector.domain_cache.base_path(host(&request));
    let mut answer = answer_to(thread, visitor, request).await;
    if let Some((headers, uri)) = reader {
        answer = thread.service.renderer.write(&headers, uri.path(), answer);
        answer = below(base, uri.path(), answer);
    }
    if route_of(&answer).is_none() {
        answer.extensions_mut().insert(name.clone());
    }
    answer
}

/// Returns the headers that a visitor's page depends on. The others need no copy on the way of a
/// redirect.
fn of_reader(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in [ACCEPT, ACCEPT_LANGUAGE, COOKIE] {
        for value in headers.get_all(&name) {
            kept.append(&name, value.clone());
        }
    }
    kept
}

fn is_api(path: &str) -> bool {
    path == rest::HUB || path == "/rest" || path.starts_with("/rest/")
}

/// Returns whether a path can be that of a link, and nothing else.
fn is_link(path: &str) -> bool {
    !matches!(path, "/" | "/robots.txt" | "/favicon.ico")
        && !is_page(path)
        && path_before(path, qr_code::SUFFIX).is_none()
        && path_before(path, pixel::SUFFIX).is_none()
}

async fn answer_to(thread: &ListenerThread, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let ListenerThread { service, redirects, .. } = thread;
    let path = request.uri().path();
    if is_api(path) {
        return match &service.api {
            Some(api) if path == rest::HUB => rest::hub(api, visitor.client, request).await,
            Some(api) => rest::route(api, visitor.client, request).await,
            None => misdirected(NO_API),
        };
    }
    if service.compat.takes(path) {
        return match &service.api {
            Some(api) => service.compat.route(api, visitor.client, request).await,
            None => misdirected(NO_API),
        };
    }
    if is_page(path) {
        return page(thread, visitor, request).await;
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read && let Some(file) = app_links::show(&service.redirector, host(&request), path) {
        return file;
    }
    if !service.serves_visitors {
        return misdirected("the API only: send visitors to a process with --role redirect");
    }
    if !is_read {
        return other_method(thread, visitor, request).await;
    }
    match path {
        "/" if fallback_page::catches_root(&service.redirector, host(&request)) => {
            redirect::follow(redirects, visitor, &request).await
        }
        "/" => match (fallback_page::home(redirects, visitor, &request), &service.pages) {
            // The visit is recorded. This page creates links.
            ((_, true), Some(pages)) => pages.route(visitor.client, request).await,
            ((answer, _), _) => answer,
        },
        "/robots.txt" => robots::show(&service.redirector, host(&request)).await,
        "/favicon.ico" => empty(StatusCode::NO_CONTENT),
        path if path_before(path, qr_code::SUFFIX).is_some() => {
            qr_code::draw(redirects, visitor, &request).await
        }
        path if path_before(path, pixel::SUFFIX).is_some() => pixel::show(redirects, visitor, &request).await,
        _ => redirect::follow(redirects, visitor, &request).await,
    }
}

/// Answers a request of another method than GET and HEAD: for a link that takes it, or the form
/// for a password. Others get 405.
async fn other_method(thread: &ListenerThread, visitor: Visitor, request: Request<Incoming>) -> Answer {
    if is_link(request.uri().path())
        && let Some(answer) = redirect::forward(&thread.redirects, visitor, &request).await
    {
        return answer;
    }
    if *request.method() == Method::POST && unlock::is_form(&request) {
        return unlock::unlock(&thread.redirects, visitor, request).await;
    }
    let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "expected GET or HEAD\n");
    refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    refused
}

async fn page(thread: &ListenerThread, visitor: Visitor, request: Request<Incoming>) -> Answer {
    let service = &thread.service;
    if let Some(answer) = service.renderer.answer(&request, service.is_https) {
        return answer;
    }
    match &service.pages {
        Some(pages) => pages.route(visitor.client, request).await,
        None => misdirected("redirects only: send these pages to a process with --role api"),
    }
}

/// Refuses a request of a role that this process has not. 404 would say that there is no such link
/// (I8); 421 says that another process knows (RFC 9110, section 15.5.20).
fn misdirected(serves: &str) -> Answer {
    let body = format!("this process serves {serves}\n");
    let mut answer = answer(StatusCode::MISDIRECTED_REQUEST, TEXT, body);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
