//! The REST API, in the shapes of Shlink's REST API v3, so that its clients work unchanged.
//!
//! Additions of our own are extra fields and paths, never changed ones. As Shlink does, a wrong method is answered like an
//! unknown path (404), a malformed body is noticed before a missing key, and preflights need no key.

mod body;
mod bulk;
mod cors;
mod create;
mod edit;
mod fields;
mod get;
mod health;
mod list;
mod pagination;
mod problem;
mod query;
mod reservations;
mod short_url;
mod split;
mod tags;

use std::sync::Arc;

use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    body::{Bytes, Incoming},
    header::ORIGIN,
};

use super::{Answer, App, answer};
use crate::{api_key::Grant, scope::Scope};
use problem::Problem;
use query::Query;

pub use bulk::CALLS_MAX as BULK_CALLS_MAX;

const JSON: &str = "application/json";
/// The one call whose body is not read before it is answered.
const BULK: &str = "/rest/v3/short-urls/bulk";

/// Whether this is the one call whose body is read while it is answered.
pub(super) fn is_bulk(method: &Method, path: &str) -> bool {
    method == Method::POST && path == BULK
}

/// Answers anything below `/rest`.
pub(super) async fn route(app: &Arc<App>, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    if parts.method == Method::OPTIONS {
        return cors::preflight(parts.uri.path(), &parts.headers);
    }
    let cross_origin = parts.headers.contains_key(ORIGIN);
    let streams = is_bulk(&parts.method, parts.uri.path());
    let mut call = Call {
        app: Arc::clone(app),
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        body: Bytes::new(),
    };
    // Away from the listener's thread: stores must not slow redirects down.
    let task = if streams {
        app.runtime.spawn(async move { call.answer_bulk(body).await })
    } else {
        match body::read(body, body::limit(call.uri.path())).await {
            Ok(body) => call.body = body,
            Err(problem) => return finish(app, problem.into_answer(), cross_origin),
        }
        app.runtime.spawn(async move { call.answer().await })
    };
    finish(app, task.await.unwrap_or_else(|_| Problem::Internal.into_answer()), cross_origin)
}

fn finish(app: &App, mut answer: Answer, cross_origin: bool) -> Answer {
    if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        app.metrics.unavailable.increment(1);
    }
    if cross_origin {
        cors::allow(&mut answer);
    }
    answer
}

/// One request to the API, its body read.
struct Call {
    app: Arc<App>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Call {
    async fn answer(&self) -> Answer {
        match self.execute().await {
            Ok(answer) => answer,
            Err(problem) => problem.into_answer(),
        }
    }

    async fn answer_bulk(&self, body: Incoming) -> Answer {
        let created = async { bulk::create(&self.app, self.authorize(Scope::Create).await?.id, body).await };
        created.await.unwrap_or_else(Problem::into_answer)
    }

    async fn execute(&self) -> Result<Answer, Problem> {
        let segments: Vec<&str> = self.uri.path().split('/').skip(2).collect();
        match (&self.method, &segments[..]) {
            (&Method::GET | &Method::HEAD, ["health"] | ["v3", "health"]) => {
                Ok(health::report(&self.app).await)
            }
            (_, ["v3", "short-urls", name @ ..]) => self.short_urls(name).await,
            (_, ["v3", "tags", below @ ..]) => self.tags(below).await,
            (_, ["v3", "reservations", below @ ..]) => self.reservations(below).await,
            _ => Err(self.no_route()),
        }
    }

    /// A slug may have several segments, and clients send its slashes as they are.
    async fn short_urls(&self, name: &[&str]) -> Result<Answer, Problem> {
        let app = &*self.app;
        let (joined, query) = (name.join("/"), self.uri.query());
        match (&self.method, name) {
            (&Method::POST, []) => {
                let fields = body::fields(&self.body)?;
                create::create(app, &fields, self.authorize(Scope::Create).await?.id).await
            }
            (&Method::GET | &Method::HEAD, []) => {
                self.authorize(Scope::Read).await?;
                list::list(app, &Query::of(&self.uri)).await
            }
            (&Method::GET | &Method::HEAD, _) => {
                self.authorize(Scope::Read).await?;
                get::get(app, &joined, query).await
            }
            (&Method::PATCH, [_, ..]) => {
                let fields = body::fields(&self.body)?;
                let by = self.authorize(Scope::Edit).await?.id;
                edit::edit(app, &joined, query, &self.headers, &fields, by).await
            }
            (&Method::DELETE, [_, ..]) => {
                let by = self.authorize(Scope::Delete).await?.id;
                edit::delete(app, &joined, query, &self.headers, by).await
            }
            _ => Err(self.no_route()),
        }
    }

    async fn tags(&self, below: &[&str]) -> Result<Answer, Problem> {
        let (app, query) = (&*self.app, Query::of(&self.uri));
        match (&self.method, below) {
            (&Method::GET | &Method::HEAD, [] | ["stats"]) => {
                self.authorize(Scope::Read).await?;
                tags::list(app, &query, !below.is_empty()).await
            }
            (&Method::PUT, []) => {
                let fields = body::fields(&self.body)?;
                self.authorize(Scope::Edit).await?;
                tags::rename(app, &fields).await
            }
            (&Method::DELETE, []) => {
                self.authorize(Scope::Delete).await?;
                tags::delete(app, &query).await
            }
            _ => Err(self.no_route()),
        }
    }

    async fn reservations(&self, below: &[&str]) -> Result<Answer, Problem> {
        let key = self.authorize(Scope::Reserve);
        match (&self.method, below) {
            (&Method::POST, []) => {
                let fields = body::fields(&self.body)?;
                reservations::create(&self.app, &fields, key.await?).await
            }
            (&Method::GET | &Method::HEAD, []) => reservations::list(&self.app, key.await?).await,
            (&Method::GET | &Method::HEAD, [id]) => reservations::get(&self.app, id, key.await?).await,
            (&Method::DELETE, [id]) => reservations::give_up(&self.app, id, key.await?).await,
            (&Method::POST, [id, "short-urls"]) => {
                reservations::fill(&self.app, id, &self.body, key.await?).await
            }
            _ => Err(self.no_route()),
        }
    }

    fn no_route(&self) -> Problem {
        Problem::NoRoute { method: self.method.clone(), url: self.full_url() }
    }

    /// The key, if it may do this. An empty header counts as none.
    async fn authorize(&self, scope: Scope) -> Result<Grant, Problem> {
        let header = self.headers.get("x-api-key").filter(|value| !value.is_empty()).ok_or(Problem::NoKey)?;
        let key = header.to_str().map_err(|_| Problem::WrongKey)?;
        let found = self.app.keys.find(&*self.app.store, key).await.map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "look up an API key");
            Problem::Unavailable
        })?;
        let grant = found.ok_or(Problem::WrongKey)?;
        if grant.scopes.allow(scope) { Ok(grant) } else { Err(Problem::Forbidden { scope }) }
    }

    fn full_url(&self) -> String {
        format!("{}{}", self.app.public_url, self.uri)
    }
}

fn json(body: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => answer(StatusCode::OK, JSON, bytes),
        Err(error) => {
            tracing::error!(%error, "write JSON");
            Problem::Internal.into_answer()
        }
    }
}
