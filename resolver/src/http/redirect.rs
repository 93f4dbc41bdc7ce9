//! `GET|HEAD /{code}`
//!
//! Almost every redirect is answered from the cache, in the turn in which its request was read: [`at_once`] waits for nothing. What
//! it does not know goes through [`follow`].

use std::time::Duration;

use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, LOCATION, REFERER, RETRY_AFTER, USER_AGENT},
};
use jiff::Timestamp;
use tokio::time::sleep;

use super::{Answer, App, Desk, Visitor, answer, empty, pages, retry_later};
use crate::{
    codes::{Code, LinkId},
    links::{Link, Slug, forward_query, location},
    visits::Visit,
};

/// How long a client that asks for too many unknown codes waits for each refusal.
const HELD: Duration = Duration::from_secs(1);

/// The redirect, when the cache has the link.
pub(super) fn at_once(desk: &Desk, visitor: Visitor, request: &Request<Incoming>) -> Option<Answer> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let code = Code::parse(request.uri().path().get(1..)?).ok()?;
    let (now, query) = (Timestamp::now(), request.uri().query());
    desk.hot.find(&desk.app.lookup, &code, now, |target| {
        // A query that goes along makes a location of its own.
        let forwards = target.forward_query && query.is_some_and(|query| !query.is_empty());
        let location = (!forwards).then(|| HeaderValue::from_bytes(&target.location))?.ok()?;
        Some(redirect(desk, visitor, (request, now), target.link, location))
    })
}

/// Redirects to where a code leads.
pub(super) async fn follow(desk: &Desk, visitor: Visitor, request: &Request<Incoming>) -> Answer {
    let app = &*desk.app;
    let Some(wanted) = Wanted::of(app, request.uri().path()) else { return not_found(app) };
    // What is in the cache exists, and costs nothing.
    let is_free = match &wanted {
        Wanted::Code(code) => app.lookup.knows(code),
        Wanted::Slug(slug) => app.lookup.knows_slug(slug),
    };
    if !is_free && let Err(wait) = app.clients.spend(visitor.client) {
        // A prompt refusal would be asked for again at once, and take the core from others.
        sleep(HELD).await;
        return slow_down(app, wait);
    }
    let found = match &wanted {
        Wanted::Code(code) => app.lookup.find(*code).await,
        Wanted::Slug(slug) => app.lookup.find_slug(slug).await,
    };
    if !is_free && !matches!(found, Ok(None)) {
        app.clients.give_back(visitor.client);
    }
    let now = Timestamp::now();
    match found {
        Ok(Some(link)) if !link.is_live(now) => not_found(app),
        Ok(Some(link)) if link.is_limited() => match app.admission.admit(link.id).await {
            Ok(true) => lead(desk, visitor, (request, now), &link),
            Ok(false) => not_found(app),
            Err(_) => unavailable(app),
        },
        Ok(Some(link)) => lead(desk, visitor, (request, now), &link),
        Ok(None) => not_found(app),
        Err(_) => unavailable(app),
    }
}

fn unavailable(app: &App) -> Answer {
    app.metrics.unavailable.increment(1);
    retry_later(answer(StatusCode::SERVICE_UNAVAILABLE, pages::HTML, pages::UNAVAILABLE))
}

fn lead(
    desk: &Desk,
    visitor: Visitor,
    (request, now): (&Request<Incoming>, Timestamp),
    link: &Link,
) -> Answer {
    match target(link, request.uri().query()) {
        Some(target) => redirect(desk, visitor, (request, now), link.id, target),
        None => not_found(&desk.app),
    }
}

/// What a path asks for.
enum Wanted {
    /// A code that could have been minted here, whether by us or by a person.
    Code(Code),
    /// Anything else that a person could have picked.
    Slug(Slug),
}

impl Wanted {
    fn of(app: &App, path: &str) -> Option<Self> {
        match Code::parse(path.get(1..)?).ok().filter(|code| app.lookup.is_mintable(code)) {
            Some(code) => Some(Self::Code(code)),
            None => Slug::of_path(path).map(Self::Slug),
        }
    }
}

fn target(link: &Link, query: Option<&str>) -> Option<HeaderValue> {
    let target = match query.filter(|query| link.forward_query && !query.is_empty()) {
        Some(query) => {
            HeaderValue::try_from(location(&forward_query(link.long_url.as_str(), query)).as_ref())
        }
        None => HeaderValue::try_from(location(link.long_url.as_str()).as_ref()),
    };
    if target.is_err() {
        // A stored URL was checked and a query came through the HTTP parser, so this is a row that nobody checked.
        tracing::error!(id = ?link.id, "the long URL does not fit a header");
    }
    target.ok()
}

fn redirect(
    desk: &Desk,
    visitor: Visitor,
    (request, at): (&Request<Incoming>, Timestamp),
    link: LinkId,
    target: HeaderValue,
) -> Answer {
    let app = &*desk.app;
    // A HEAD is a look at the link, by a checker or a preview, and nobody's visit.
    let visit = (*request.method() == Method::GET).then(|| Visit {
        link,
        at,
        client: visitor.client,
        user_agent: text(request.headers(), &USER_AGENT),
        referer: text(request.headers(), &REFERER),
    });
    desk.visits.note(visit);
    let mut redirect = empty(app.redirect_status);
    redirect.headers_mut().insert(LOCATION, target);
    if matches!(app.redirect_status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT) {
        // A permanent redirect that browsers kept for ever could never be edited.
        redirect.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private,max-age=30"));
    }
    redirect
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a [u8] {
    headers.get(name).map_or(&[], HeaderValue::as_bytes)
}

/// Not a 404: whether the link exists was not looked up.
fn slow_down(app: &App, wait: Duration) -> Answer {
    app.metrics.unknown_refused.increment(1);
    let mut answer = answer(StatusCode::TOO_MANY_REQUESTS, pages::HTML, pages::SLOW_DOWN);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    answer
}

fn not_found(app: &App) -> Answer {
    app.metrics.not_found.increment(1);
    answer(StatusCode::NOT_FOUND, pages::HTML, pages::NOT_FOUND)
}
