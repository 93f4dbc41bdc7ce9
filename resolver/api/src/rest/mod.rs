//! The REST API, in the shapes of Shlink's REST API v3, so that its clients work unchanged.
//!
//! 1. Additions to Shlink's API are extra fields and paths, never changed ones. As in Shlink, a
//!    wrong method is answered like an unknown path (404), and preflights need no key.
//! 2. [`routes`] is the table of contents. Each entry names a path, the scope of its key, its
//!    handler and its description, beside the handler in the file of its noun. The router and the
//!    OpenAPI document are made from it.
//! 3. Handlers translate between the crates `dto` and `app`. They decide nothing.

mod audit;
mod body;
mod bulk;
mod bulk_edit;
mod call;
mod create;
mod dispatch;
mod docs;
mod domains;
mod explain;
mod form;
mod health;
mod json;
mod link;
mod link_fields;
mod list;
mod live;
mod mercure;
mod openapi;
mod pagination;
mod prelude;
mod problem;
mod qr_codes;
mod query;
mod read;
mod reservations;
mod route;
mod router;
mod rules;
mod schedule;
mod split;
mod stats;
mod streamed;
mod tags;
mod targets;
mod version;
mod visit_json;
mod visits;
mod webhooks;

use std::{net::IpAddr, sync::Arc};

use futures_util::future::BoxFuture;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, HeaderValue, ORIGIN},
};

use crate::{Api, Task};
pub use call::Call;
use daemon::traces::in_current;
pub use health::HealthCheck;
pub use mercure::{HUB, hub};
pub use openapi::problem_schemas;
pub use problem::{Problem, status_of};
use route::{Handler, LINKS, Route};
pub use router::Router;
use web::{Answer, cors, run_to_end::RunToEnd};

/// A create with a longer body is not parsed on a listener's thread: redirects would wait for it.
const IN_PLACE_BYTES: usize = 4 * 1024;

/// Returns the router of the API. `has_single_step` adds the create with the key in the address.
pub fn router(has_single_step: bool) -> Router {
    Router::new(routes(has_single_step))
}

fn routes(has_single_step: bool) -> Vec<Route> {
    let groups = [
        health::routes(),
        openapi::routes(),
        mercure::routes(),
        audit::routes(),
        list::routes(),
        create::routes(has_single_step),
        bulk::routes(),
        bulk_edit::routes(),
        link::routes(),
        schedule::routes(),
        explain::routes(),
        qr_codes::routes(),
        rules::routes(),
        tags::routes(),
        domains::routes(),
        visits::routes(),
        stats::routes(),
        live::routes(),
        reservations::routes(),
        targets::routes(),
        webhooks::routes(),
    ];
    groups.into_iter().flatten().collect()
}

/// Returns whether this is the one call whose body is read while it is answered.
pub fn is_bulk(method: &Method, path: &str) -> bool {
    method == Method::POST && version::path(path) == bulk::PATH
}

/// Answers a request for a path below `/rest`. The future is in a box, so that it is compiled here
/// once.
pub fn route(api: &Arc<Api>, client: IpAddr, request: Request<Incoming>) -> BoxFuture<'_, Answer> {
    Box::pin(async move {
        let (mut head, mut body) = request.into_parts();
        head.uri = version::address(head.uri);
        if head.method == Method::OPTIONS {
            return cors::preflight(&head.headers, cors::ALL_METHODS);
        }
        let is_cross_origin = head.headers.contains_key(ORIGIN);
        let mut call = Call::new(api, client, head);
        let Some((route, parameters)) = api.router.find(&call.method, call.uri.path()) else {
            call.leave_unread(&mut body).await;
            return finish(api, call.no_route().into_answer(), is_cross_origin);
        };
        call.parameters = parameters;
        let mut answer = answer_found(api, call, &route, body).await;
        answer.extensions_mut().insert(route.name.clone());
        finish(api, answer, is_cross_origin)
    })
}

async fn answer_found(api: &Arc<Api>, mut call: Call, route: &Arc<Route>, body: Incoming) -> Answer {
    if let Handler::Streamed(scope) = route.handler {
        let task: Task<Answer> = Box::pin(bulk::answer(call, scope, body));
        let answer = api.runtime.spawn(in_current(task)).await;
        return answer.unwrap_or_else(|_| Problem::INTERNAL.into_answer());
    }
    if let Err(problem) = call.admit(route, body).await {
        return call.finish(problem.into_answer());
    }
    let is_create = route.path == LINKS && route.method == Method::POST;
    let answer = if is_create && call.body.len() <= IN_PLACE_BYTES {
        RunToEnd::new(&api.runtime, in_current(call.answer(Arc::clone(route)))).await
    } else {
        // Away from the listener's thread, because long calls must not slow redirects down. A read
        // runs to its end too, even if its client has gone: the database would work on, and the
        // permit of its key must not be free meanwhile.
        let task: Task<Answer> = Box::pin(call.answer(Arc::clone(route)));
        api.runtime.spawn(in_current(task)).await.ok()
    };
    answer.unwrap_or_else(|| Problem::INTERNAL.into_answer())
}

fn finish(api: &Api, mut answer: Answer, is_cross_origin: bool) -> Answer {
    if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        api.metrics.unavailable.increment(1);
    }
    // Answers depend on a key that shared caches do not know (RFC 9111, section 3.5, knows
    // Authorization only).
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if is_cross_origin {
        cors::allow(&mut answer);
    }
    answer
}
