//! Redirects: `GET|HEAD /{code}`.
//!
//! Almost every redirect is for a link that the cache of the thread has ([`known`]). It is answered
//! in the same poll that read its request: by the fast path ([`express`](super::express)), or by
//! [`at_once`] on a connection that hyper serves. All others go through [`follow`].

use std::{net::IpAddr, sync::Arc};

use app::{
    domain_cache::{Place, Question},
    lookup::{LookupError, Wanted},
    visits::Visit,
};
use codes::{Code, LinkId};
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{
        ACCEPT_LANGUAGE, CACHE_CONTROL, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, REFERER,
        USER_AGENT,
    },
};
use jiff::Timestamp;
use links::{Facts, Link, asks_where, choose, forward_query, is_preview, location};

use super::{
    Answer, App, Desk, Visitor, empty, hold_back, pages,
    stray::{Stray, gone, look, slow_down, stray, taken_down, unavailable},
};
use crate::{
    hot::Target,
    places::{CountryCode, Located},
};

/// The parts of a request that a redirect uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    /// Whether the method is HEAD: a link checker or a preview looks at the link, which is not a
    /// visit.
    pub(super) is_look: bool,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) host: Option<&'a str>,
    pub(super) user_agent: &'a [u8],
    pub(super) referer: &'a [u8],
}

impl<'a> Asked<'a> {
    fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            is_look: *request.method() == Method::HEAD,
            path: request.uri().path(),
            query: request.uri().query(),
            host: host(request),
            user_agent: bytes(request.headers(), &USER_AGENT),
            referer: bytes(request.headers(), &REFERER),
        }
    }
}

/// Calls `lead` with the link's target if the caches have the link, and returns the result. If that
/// is not `None`, the visit is recorded. The function never waits.
pub(super) fn known<T>(
    desk: &Desk,
    client: IpAddr,
    asked: &Asked<'_>,
    lead: impl FnOnce(&Target, Timestamp) -> Option<T>,
) -> Option<T> {
    let code = Code::parse(asked.path.get(1..)?).ok()?;
    let directory = &desk.app.directory;
    if !directory.is_plain() && !directory.is_default(asked.host) {
        return None;
    }
    let now = directory.now();
    desk.hot.find(&desk.app.lookup, &code, now, |target| {
        // A forwarded query changes the location.
        if target.forward_query && asked.query.is_some_and(|query| !query.is_empty()) {
            return None;
        }
        lead(target, now).inspect(|_| note(desk, client, asked, now, target.link))
    })
}

/// Returns the redirect if the caches have the link.
pub(super) fn at_once(desk: &Desk, visitor: Visitor, request: &Request<Incoming>) -> Option<Answer> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    known(desk, visitor.client, &Asked::of(request), |target, _| {
        let location = HeaderValue::from_bytes(&target.location).ok()?;
        Some(redirect(desk.app.redirect_status, location))
    })
}

/// Answers a request for a link, with a lookup in the store if necessary.
pub(super) async fn follow(desk: &Desk, visitor: Visitor, request: &Request<Incoming>) -> Answer {
    let app = &*desk.app;
    let found = match find(app, visitor.client, request.uri().path(), host(request)).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let now = app.directory.now();
    if !found.link.is_live(now) {
        if !found.link.was_live(now) {
            return stray(app, &found.place, Stray::Code(&found.wanted), request.uri().path());
        }
        return gone(app, &found.place, &found.wanted, request.uri().path());
    }
    let (has_password, is_look) = (found.link.password().is_some(), is_look(request));
    if found.link.is_limited() && (has_password || is_look) {
        // A password form for a link whose visits are used up would be pointless, and a preview
        // must not use up a visit.
        match app.admission.is_spent(found.link.id).await {
            Ok(false) => {}
            Ok(true) => return gone(app, &found.place, &found.wanted, request.uri().path()),
            Err(_) => return unavailable(app),
        }
    }
    match (has_password, is_look && found.link.is_limited()) {
        (true, _) => pages::ask_password(false),
        (false, true) => look(),
        (false, false) => lead(desk, visitor, request, now, &found).await,
    }
}

/// Returns whether a request is a look at the link, by a link checker or for a chat preview, and
/// not a visit. Such a request is not told the target of a link with a visit limit: a look uses up
/// no visit, and anyone can claim to be a preview.
fn is_look<B>(request: &Request<B>) -> bool {
    let user_agent = std::str::from_utf8(bytes(request.headers(), &USER_AGENT));
    *request.method() == Method::HEAD || user_agent.is_ok_and(is_preview)
}

/// A link that a visitor requested, live or not.
pub(super) struct FoundLink {
    pub(super) link: Arc<Link>,
    pub(super) place: Place,
    pub(super) wanted: Wanted,
}

/// Looks up the link of a path.
///
/// # Errors
/// Returns the answer to send if the path has no link, the link is blocked, the client has used up
/// its budget of unknown codes, or it is unknown whether the link exists (I8).
pub(super) async fn find(
    app: &App,
    client: IpAddr,
    path: &str,
    host: Option<&str>,
) -> Result<FoundLink, Answer> {
    let question = app.directory.question(host, path);
    let Question { place, wanted, .. } = &question;
    let Some(wanted) = wanted else {
        return Err(stray(app, place, Stray::Regular, path));
    };
    let is_disabled = place.domain.settings.disabled;
    if is_disabled && !place.is_sure {
        return Err(unavailable(app));
    }
    if is_disabled {
        return Err(stray(app, place, Stray::Code(wanted), path));
    }
    // A link in the cache exists, and looking it up costs no query.
    let is_free = app.lookup.knows_on(place.domain.id, wanted);
    if !is_free && let Err(wait) = app.clients.spend(client) {
        return Err(hold_back(slow_down(app, wait)));
    }
    let found = app.lookup.find_on(place.domain.id, wanted).await;
    if !is_free && !matches!(found, Ok(None)) {
        app.clients.give_back(client);
    }
    let is_stopped = matches!(&found, Ok(Some(link)) if is_stopped(app, link));
    let leads = |link: &Link| link.is_live(app.directory.now()) && !is_stopped;
    match found {
        // The link may be the default domain's while the host belongs to another domain.
        Ok(Some(link)) if !leads(&link) && !app.directory.may_deny(&question) => Err(unavailable(app)),
        Ok(Some(_)) if is_stopped => Err(taken_down(app)),
        Ok(Some(link)) => Ok(FoundLink { link, place: place.clone(), wanted: wanted.clone() }),
        Ok(None) if app.directory.may_deny(&question) => Err(stray(app, place, Stray::Code(wanted), path)),
        Ok(None) | Err(LookupError::NoStore | LookupError::Overloaded) => Err(unavailable(app)),
    }
}

/// Returns whether the link is blocked, or its only target is denied by a target rule.
fn is_stopped(app: &App, link: &Link) -> bool {
    let is_denied = || link.rules().is_empty() && !link.is_deleted() && !app.lookup.allows(&link.long_url);
    link.is_blocked() || is_denied()
}

/// Redirects a visitor who may follow a live link, unless the link's visits are used up.
pub(super) async fn lead<B>(
    desk: &Desk,
    visitor: Visitor,
    request: &Request<B>,
    now: Timestamp,
    FoundLink { link, place, wanted }: &FoundLink,
) -> Answer {
    let app = &*desk.app;
    let path = request.uri().path();
    let target = match target(app, visitor, request, now, link) {
        Ok(target) => target,
        Err(NoTarget::Denied) => return taken_down(app),
        Err(NoTarget::Unfit) => return stray(app, place, Stray::Code(wanted), path),
    };
    // The visit is counted last, so that a visit without a target is not.
    if link.is_limited() {
        match app.admission.admit(link.id).await {
            Ok(true) => {}
            Ok(false) => return gone(app, place, wanted, path),
            Err(_) => return unavailable(app),
        }
    }
    note(desk, visitor.client, &Asked::of(request), now, link.id);
    let status = link.status().and_then(|status| StatusCode::from_u16(status.code()).ok());
    redirect(status.unwrap_or(app.redirect_status), target)
}

/// The reasons for which a live link has no target for this visitor.
enum NoTarget {
    /// A target rule denies it.
    Denied,
    /// It is not a valid header value.
    Unfit,
}

/// Returns the location for this visitor: that of the link's first matching rule, or the link's
/// own.
fn target<B>(
    app: &App,
    visitor: Visitor,
    request: &Request<B>,
    now: Timestamp,
    link: &Link,
) -> Result<HeaderValue, NoTarget> {
    let query = request.uri().query().unwrap_or("");
    let text = |name| std::str::from_utf8(bytes(request.headers(), name)).unwrap_or("");
    let located =
        if asks_where(link.rules()) { app.places.locate(visitor.client) } else { Located::default() };
    // A proxy in front knows the country of its clients better than the GeoIP file does.
    let told = app.clients.country(visitor.peer, request.headers());
    let rule = choose(
        link.rules(),
        &Facts {
            user_agent: text(&USER_AGENT),
            accept_language: text(&ACCEPT_LANGUAGE),
            query,
            ip: visitor.client,
            country: told.or(located.country.as_ref().map(CountryCode::as_str)),
            city: located.city.as_deref(),
            now,
        },
    );
    let long_url = rule.map_or(&link.long_url, |rule| &rule.long_url);
    if !app.lookup.allows(long_url) {
        return Err(NoTarget::Denied);
    }
    let long_url = long_url.as_str();
    let target = if link.forward_query && !query.is_empty() {
        HeaderValue::try_from(location(&forward_query(long_url, query)).as_ref())
    } else {
        HeaderValue::try_from(location(long_url).as_ref())
    };
    if target.is_err() {
        // Stored URLs are validated and the query passed the HTTP parser, so the row was written
        // without validation.
        tracing::error!(id = ?link.id, "the long URL does not fit a header");
    }
    target.map_err(|_| NoTarget::Unfit)
}

/// Returns the host of a request.
pub(super) fn host<B>(request: &Request<B>) -> Option<&str> {
    let named = || request.headers().get(HOST)?.to_str().ok();
    request.uri().authority().map(|authority| authority.as_str()).or_else(named)
}

fn note(desk: &Desk, client: IpAddr, asked: &Asked<'_>, at: Timestamp, link: LinkId) {
    let Asked { user_agent, referer, .. } = *asked;
    desk.visits.note((!asked.is_look).then_some(Visit { link, at, client, user_agent, referer }));
}

/// Returns the `Cache-Control` value for a redirect of this status; `None` for a status that is not
/// cached by default.
pub(super) fn kept_for(status: StatusCode) -> Option<&'static str> {
    // A permanent redirect that browsers kept forever could never be edited.
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT)
        .then_some("private,max-age=30")
}

/// Builds a redirect to a location.
pub(super) fn redirect(status: StatusCode, target: HeaderValue) -> Answer {
    let mut redirect = empty(status);
    redirect.headers_mut().insert(LOCATION, target);
    if let Some(kept) = kept_for(status) {
        redirect.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    }
    redirect
}

fn bytes<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a [u8] {
    headers.get(name).map_or(&[], HeaderValue::as_bytes)
}
