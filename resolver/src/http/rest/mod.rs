//! The REST API, in the shapes of Shlink's REST API v3, so that its clients work unchanged.
//!
//! Additions of our own are extra fields and paths, never changed ones. As Shlink does, a wrong method is answered like an
//! unknown path (404), and preflights need no key. A call's key is checked before its body is read ([`access`]).

mod access;
mod audit;
mod block;
mod body;
mod bulk;
mod cors;
mod create;
mod domains;
mod edit;
mod fields;
mod form;
mod get;
mod health;
mod list;
mod numbers;
mod openapi;
mod pagination;
mod problem;
mod query;
mod reservations;
mod restore;
mod rules;
mod short_url;
mod single_step;
mod split;
mod tags;
mod targets;
mod version;
mod visits;

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    body::{Body as _, Bytes, Incoming},
    header::{CACHE_CONTROL, EXPECT, HeaderValue, ORIGIN},
};

use app::{authorize::require, edit_link::Target, find_link::LinkName};
use links::{
    api_key::{ApiKeyId, Grant},
    scope::Scope,
};

use super::{
    Answer, App, answer,
    authenticate::authenticate,
    budgets::{Held, Holder},
    calls::Share,
    run_to_end::RunToEnd,
};
pub(super) use problem::Problem;
pub(super) use query::Query;
pub(super) use short_url::base;

const JSON: &str = "application/json";
/// A create with a longer body is not parsed on a listener's thread: redirects would wait for it.
const IN_PLACE_BYTES: usize = 4 * 1024;
/// Fields of a form: it is parsed on a listener's thread. A link has about twenty, and a hundred tags.
const FORM_FIELDS: usize = 256;
/// The call that creates a link.
const CREATE: &str = "/rest/v3/short-urls";
/// The one call whose body is not read before it is answered.
const BULK: &str = "/rest/v3/short-urls/bulk";

/// Whether this is the one call whose body is read while it is answered.
pub(super) fn is_bulk(method: &Method, path: &str) -> bool {
    method == Method::POST && version::path(path) == BULK
}

/// Answers anything below `/rest`.
pub(super) async fn route(app: &Arc<App>, client: IpAddr, request: Request<Incoming>) -> Answer {
    let (mut parts, body) = request.into_parts();
    parts.uri = version::address(parts.uri);
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
        held: None,
        admitted: None,
        key: OnceLock::new(),
        place: OnceLock::new(),
        client,
        share: OnceLock::new(),
    };
    if streams {
        let task = app.runtime.spawn(async move { call.answer_bulk(body).await });
        return finish(app, task.await.unwrap_or_else(|_| Problem::INTERNAL.into_answer()), cross_origin);
    }
    if let Err(problem) = call.admit(body).await {
        return finish(app, call.tell(problem.into_answer()), cross_origin);
    }
    if call.is_create() && call.body.len() <= IN_PLACE_BYTES {
        let answer = RunToEnd::new(&app.runtime, call.answer()).await;
        return finish(app, answer.unwrap_or_else(|_| Problem::INTERNAL.into_answer()), cross_origin);
    }
    // Away from the listener's thread: what takes long must not slow redirects down.
    let task = app.runtime.spawn(async move { call.answer().await });
    // Also a read runs to its end though its client has gone: the database would work on while the
    // turn of its key was free again.
    let answer = task.await;
    finish(app, answer.unwrap_or_else(|_| Problem::INTERNAL.into_answer()), cross_origin)
}

fn finish(app: &App, mut answer: Answer, cross_origin: bool) -> Answer {
    if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        app.metrics.unavailable.increment(1);
    }
    // Answers depend on a key, and caches on the way do not know it (RFC 9111, section 3.5 knows Authorization only).
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
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
    held: Option<Held>,
    /// The key, if the call had a body to be admitted.
    admitted: Option<Grant>,
    /// Whose key it is, once that is known.
    key: OnceLock<ApiKeyId>,
    /// Its place among the calls under way, which it keeps when its client has gone.
    place: OnceLock<Held>,
    client: IpAddr,
    /// What is left to the caller.
    share: OnceLock<Share>,
}

impl Call {
    /// Checks the key and its scope, and reads the body when they are right.
    async fn admit(&mut self, mut body: Incoming) -> Result<(), Problem> {
        if body.is_end_stream() {
            return Ok(());
        }
        let needs = access::of(&self.method, self.uri.path());
        let admitted = self.authenticate().await.and_then(|grant| match needs.scope {
            Some(scope) => Ok(require(&grant, scope).map(|()| grant)?),
            None => Ok(grant),
        });
        let grant = match admitted {
            Ok(grant) => grant,
            // Paths that are not there, and those that need neither key nor body, are answered as if none had come.
            Err(_) if needs.scope.is_none() => {
                self.leave_unread(&mut body).await;
                return Ok(());
            }
            Err(problem) => {
                self.leave_unread(&mut body).await;
                return Err(problem);
            }
        };
        let mut held = self.app.budgets.bodies.take(Holder::Key(grant.id), 0)?;
        self.body = body::read(body, needs.bytes, &mut held).await?;
        if form::is_one(&self.headers, &self.body) {
            if form::fields(&self.body) > FORM_FIELDS {
                return Err(Problem::TooManyValues { most: FORM_FIELDS as u64 });
            }
            self.body = form::as_json(&self.body);
        }
        body::hold_values(&self.body, &mut held)?;
        (self.held, self.admitted) = (Some(held), Some(grant));
        Ok(())
    }

    /// Leaves a body to the connection's end. Who asks first whether to send it has not sent it.
    async fn leave_unread(&self, body: &mut Incoming) {
        if !self.headers.contains_key(EXPECT) {
            body::discard(body).await;
        }
    }

    async fn answer(mut self) -> Answer {
        let executed = self.execute().await;
        let kept = executed.and_then(|mut answer| self.keep(&mut answer).map(|()| answer));
        self.tell(kept.unwrap_or_else(Problem::into_answer))
    }

    /// Has a long answer counted until it has gone. That of a write is told in any case, so it takes the place of the body.
    fn keep(&mut self, answer: &mut Answer) -> Result<(), Problem> {
        let of_body = self.held.take();
        if matches!(self.method, Method::GET | Method::HEAD) {
            // What needs no key is the same bytes for all.
            let Some(key) = self.key.get() else { return Ok(()) };
            return Ok(self.app.budgets.keep(Holder::Key(*key), answer)?);
        }
        if let Some(mut held) = of_body {
            let _ = held.grow_to(answer.body().len() as u64);
            answer.body_mut().hold(held);
        }
        Ok(())
    }

    fn tell(&self, mut answer: Answer) -> Answer {
        if let Some(share) = self.share.get() {
            share.tell(&mut answer);
        }
        answer
    }

    async fn answer_bulk(&self, body: Incoming) -> Answer {
        let created = async { bulk::create(&self.app, &self.authenticate().await?, body).await };
        self.tell(created.await.unwrap_or_else(Problem::into_answer))
    }

    async fn execute(&self) -> Result<Answer, Problem> {
        if self.is_create() {
            return self.create().await;
        }
        // Boxed: a task is as large as the largest of its calls, and most calls are creates.
        Box::pin(self.execute_any()).await
    }

    fn is_create(&self) -> bool {
        self.method == Method::POST && self.uri.path() == CREATE
    }

    async fn create(&self) -> Result<Answer, Problem> {
        let fields = body::fields(&self.body)?;
        let by = self.authenticate().await?;
        create::create(&self.app, fields, &self.headers, &by).await
    }

    async fn execute_any(&self) -> Result<Answer, Problem> {
        let segments: Vec<&str> = self.uri.path().split('/').skip(2).collect();
        let is_read = matches!(self.method, Method::GET | Method::HEAD);
        match &segments[..] {
            ["health"] | ["v3", "health"] if is_read => Ok(health::report(&self.app).await),
            ["v3", "short-urls", name @ ..] => self.short_urls(name).await,
            ["v3", "tags", below @ ..] => self.tags(below).await,
            ["v3", "domains", below @ ..] => self.domains(below).await,
            ["v3", "visits", below @ ..] => self.visits(below).await,
            ["v3", "reservations", below @ ..] => self.reservations(below).await,
            ["v3", "targets", below @ ..] => self.targets(below).await,
            ["v3", "openapi.json"] if is_read => Ok(self.openapi()),
            ["v3", "audit"] if is_read => {
                audit::list(&self.app, &Query::of(&self.uri), &self.authenticate().await?).await
            }
            ["v3", "mercure-info"] if is_read => {
                self.authorize(Scope::Read).await?;
                Err(Problem::NoMercure)
            }
            _ => Err(self.no_route()),
        }
    }

    fn openapi(&self) -> Answer {
        let write = || openapi::document(&self.app.public_url).to_string().into();
        answer(StatusCode::OK, JSON, self.app.openapi.get_or_init(write).clone())
    }

    /// A slug may have several segments, and clients send its slashes as they are.
    async fn short_urls(&self, name: &[&str]) -> Result<Answer, Problem> {
        let (app, query) = (&*self.app, &Query::of(&self.uri));
        match (&self.method, name) {
            (&Method::GET | &Method::HEAD, []) => {
                list::list(&self.app, query, &self.authenticate().await?).await
            }
            (&Method::GET, ["shorten"]) if app.single_step_create => {
                let by = self.authenticate_by_query(query).await?;
                single_step::create(app, query, &self.headers, &by).await
            }
            (method, [name @ .., "redirect-rules"]) if !name.is_empty() => match *method {
                Method::GET | Method::HEAD => {
                    let by = self.authenticate().await?;
                    rules::get(app, &self.name(name)?, &by).await
                }
                Method::POST => {
                    let fields = body::fields(&self.body)?;
                    let by = self.authenticate().await?;
                    rules::set(app, &self.target(name)?, &fields, &by).await
                }
                _ => Err(self.no_route()),
            },
            (method, [name @ .., "visits"]) if !name.is_empty() => match *method {
                Method::GET | Method::HEAD => {
                    let by = self.authorize(Scope::Visits).await?;
                    visits::of_link(app, &self.name(name)?, query, &by).await
                }
                Method::DELETE => {
                    let by = self.authorize(Scope::Delete).await?;
                    visits::delete_of_link(app, &self.name(name)?, &by).await
                }
                _ => Err(self.no_route()),
            },
            (&Method::POST, [name @ .., "restore"]) if !name.is_empty() => {
                let by = self.authenticate().await?;
                restore::restore(app, &self.name(name)?, &by).await
            }
            (&Method::POST, [name @ .., "block"]) if !name.is_empty() => {
                let fields = body::fields(&self.body)?;
                let by = self.authenticate().await?;
                block::block(app, &self.name(name)?, &fields, &by).await
            }
            (&Method::POST, [name @ .., "unblock"]) if !name.is_empty() => {
                let by = self.authenticate().await?;
                block::unblock(app, &self.name(name)?, &by).await
            }
            (&Method::GET | &Method::HEAD, name) => {
                let by = self.authenticate().await?;
                get::get(app, &self.name(name)?, &by).await
            }
            (&Method::PATCH, [_, ..]) => {
                let fields = body::fields(&self.body)?;
                let by = self.authenticate().await?;
                edit::edit(app, &self.target(name)?, fields, &by).await
            }
            (&Method::DELETE, [_, ..]) => {
                let by = self.authenticate().await?;
                edit::delete(app, &self.target(name)?, &by).await
            }
            _ => Err(self.no_route()),
        }
    }

    /// The link that the path and the query name. A path that is not UTF-8 names none.
    fn name(&self, segments: &[&str]) -> Result<LinkName, Problem> {
        let (path, query) = (segments.join("/"), Query::of(&self.uri));
        let decoded = percent_encoding::percent_decode_str(&path);
        let is_text = decoded.clone().decode_utf8().is_ok();
        let code = decoded.decode_utf8_lossy().into_owned();
        let name = LinkName { code, domain: query.text("domain").map(str::to_owned) };
        if is_text { Ok(name) } else { Err(self.app.links.no_link(&name).into()) }
    }

    fn target(&self, segments: &[&str]) -> Result<Target, Problem> {
        Ok(Target { name: self.name(segments)?, versions: edit::versions(&self.headers) })
    }

    async fn tags(&self, below: &[&str]) -> Result<Answer, Problem> {
        let (app, query) = (&*self.app, Query::of(&self.uri));
        match (&self.method, below) {
            (&Method::GET | &Method::HEAD, [] | ["stats"]) => {
                let by = self.authenticate().await?;
                tags::list(app, &query, !below.is_empty(), &by).await
            }
            (&Method::GET | &Method::HEAD, [name, "visits"]) => {
                let by = self.authorize(Scope::Visits).await?;
                visits::of_tag(app, name, &query, &by).await
            }
            (&Method::PUT, []) => {
                let fields = body::fields(&self.body)?;
                tags::rename(app, &fields, &self.authenticate().await?).await
            }
            (&Method::DELETE, []) => tags::delete(app, &query, &self.authenticate().await?).await,
            _ => Err(self.no_route()),
        }
    }

    async fn domains(&self, below: &[&str]) -> Result<Answer, Problem> {
        let (app, query) = (&*self.app, Query::of(&self.uri));
        match (&self.method, below) {
            (&Method::GET | &Method::HEAD, []) => {
                domains::list(app, &query, &self.authenticate().await?).await
            }
            (&Method::GET | &Method::HEAD, [name, "visits"]) => {
                let by = self.authorize(Scope::Visits).await?;
                visits::of_domain(app, name, &query, &by).await
            }
            (&Method::PATCH, ["redirects"]) => {
                let fields = body::fields(&self.body)?;
                domains::edit_redirects(app, &fields, &self.authenticate().await?).await
            }
            (&Method::PATCH, [name]) => {
                let fields = body::fields(&self.body)?;
                domains::edit(app, name, &fields, &self.authenticate().await?).await
            }
            (&Method::DELETE, [name]) if *name != "redirects" => {
                domains::remove(app, name, &self.authenticate().await?).await
            }
            _ => Err(self.no_route()),
        }
    }

    async fn visits(&self, below: &[&str]) -> Result<Answer, Problem> {
        let query = Query::of(&self.uri);
        match (&self.method, below) {
            (&Method::GET | &Method::HEAD, _) => {
                self.authorize(Scope::Visits).await?;
                match below {
                    [] => Ok(visits::overview()),
                    ["orphan"] => visits::orphan(&self.app, &query),
                    ["non-orphan"] => visits::non_orphan(&self.app, &query),
                    _ => Err(self.no_route()),
                }
            }
            (&Method::DELETE, ["orphan"]) => {
                self.authorize(Scope::Delete).await?;
                Ok(visits::deleted())
            }
            _ => Err(self.no_route()),
        }
    }

    async fn targets(&self, below: &[&str]) -> Result<Answer, Problem> {
        let (app, by) = (&*self.app, self.authenticate());
        match (&self.method, below) {
            (&Method::GET | &Method::HEAD, []) => targets::list(app, &by.await?).await,
            (&Method::PUT, []) => {
                let fields = body::fields(&self.body)?;
                targets::set(app, &fields, &by.await?).await
            }
            (&Method::DELETE, [pattern]) => targets::remove(app, pattern, &by.await?).await,
            _ => Err(self.no_route()),
        }
    }

    async fn reservations(&self, below: &[&str]) -> Result<Answer, Problem> {
        let (app, by) = (&*self.app, self.authenticate());
        match (&self.method, below) {
            (&Method::POST, []) => {
                let fields = body::fields(&self.body)?;
                reservations::create(app, &fields, &by.await?).await
            }
            (&Method::GET | &Method::HEAD, []) => reservations::list(app, &by.await?).await,
            (&Method::GET | &Method::HEAD, [id]) => reservations::get(app, id, &by.await?).await,
            (&Method::DELETE, [id]) => reservations::give_up(app, id, &by.await?).await,
            (&Method::POST, [id, "short-urls"]) => reservations::fill(app, id, &self.body, &by.await?).await,
            _ => Err(self.no_route()),
        }
    }

    fn no_route(&self) -> Problem {
        Problem::NoRoute { method: self.method.clone(), url: self.full_url() }
    }

    /// The key, if it has this scope.
    async fn authorize(&self, scope: Scope) -> Result<Grant, Problem> {
        let by = self.authenticate().await?;
        require(&by, scope)?;
        Ok(by)
    }

    /// The key, whatever it may do. An empty header counts as none.
    async fn authenticate(&self) -> Result<Grant, Problem> {
        if let Some(grant) = &self.admitted {
            return Ok(grant.clone());
        }
        let key = self.headers.get("x-api-key").map(HeaderValue::as_bytes);
        let (grant, share) = authenticate(&self.app, self.client, key).await?;
        let _ = self.key.set(grant.id);
        if self.place.get().is_none() {
            let _ = self.place.set(self.app.budgets.calls.take(Holder::Key(grant.id), 1)?);
        }
        if let Some(share) = share {
            // A path that is not there may be asked twice, with a body; the first answer is as good.
            let _ = self.share.set(share);
        }
        Ok(grant)
    }

    /// The key that is part of the address.
    async fn authenticate_by_query(&self, query: &Query) -> Result<Grant, Problem> {
        let key = query.text("apiKey").ok_or(Problem::NoKeyInQuery)?;
        let (grant, share) = authenticate(&self.app, self.client, Some(key.as_bytes())).await?;
        if let Some(share) = share {
            // A call asks for one scope, so nobody has told yet.
            let _ = self.share.set(share);
        }
        Ok(grant)
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
            Problem::INTERNAL.into_answer()
        }
    }
}
