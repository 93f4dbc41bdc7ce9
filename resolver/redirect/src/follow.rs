//! Redirects: `GET|HEAD /{code}`.
//!
//! Almost every redirect is of a link in the thread's cache ([`follow_cached`]). It is answered in
//! the poll in which its request was read: by the crate [`fast_path`] or, on a connection that also
//! carries other requests, by [`answer_cached`]. [`follow`] answers all other requests.

use std::{net::IpAddr, sync::Arc};

use app::{
    domain_cache::{Question, VisitorDomain},
    lookup::{LookupError, LookupKey},
    visits::Visit,
};
use codes::{Code, LinkId};
use fast_path::RequestHead;
use geoip::{CountryCode, Location};
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{ACCEPT_LANGUAGE, HOST, HeaderMap, HeaderName, HeaderValue, REFERER, USER_AGENT},
};
use jiff::Timestamp;
use links::{Facts, Link, asks_where, choose, forward_query, is_preview, location};
use web::{Answer, hold_back};

use crate::{
    Redirector, ThreadContext, Visitor,
    fallback_page::{Unmatched, gone, limited, not_found, slow_down, taken_down, unavailable},
    pages,
    redirection::redirect,
    thread_cache::CachedTarget,
};

fn request_head<B>(request: &Request<B>) -> RequestHead<'_> {
    RequestHead {
        is_head: *request.method() == Method::HEAD,
        path: request.uri().path(),
        query: request.uri().query(),
        host: host(request),
        user_agent: bytes(request.headers(), &USER_AGENT),
        referer: bytes(request.headers(), &REFERER),
    }
}

/// Calls `respond` with the target of a cached link, and records the visit if the result is `Some`.
/// Never waits.
///
/// Returns `None` if the caches lack the link, or if the request needs [`follow`]: for another
/// domain, or to forward its query.
pub fn follow_cached<T>(
    thread: &ThreadContext,
    client: IpAddr,
    head: &RequestHead<'_>,
    respond: impl FnOnce(&CachedTarget, Timestamp) -> Option<T>,
) -> Option<T> {
    let code = Code::parse(head.path.get(1..)?).ok()?;
    let domain_cache = &thread.redirector.domain_cache;
    if !domain_cache.is_plain() && !domain_cache.is_default(head.host) {
        return None;
    }
    let now = domain_cache.now();
    thread.cache.find(&thread.redirector.lookup, &code, now, |target| {
        // A forwarded query changes the location.
        if target.forward_query && head.query.is_some_and(|query| !query.is_empty()) {
            return None;
        }
        respond(target, now).inspect(|_| note(thread, client, head, now, target.link))
    })
}

/// Returns the redirect if the caches have the link.
pub fn answer_cached(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<Incoming>,
) -> Option<Answer> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    follow_cached(thread, visitor.client, &request_head(request), |target, _| {
        let location = HeaderValue::from_bytes(&target.location).ok()?;
        Some(redirect(thread.redirector.status, location))
    })
}

/// Answers a request for a link, with a lookup in the store if necessary.
pub async fn follow(thread: &ThreadContext, visitor: Visitor, request: &Request<Incoming>) -> Answer {
    let redirector = &*thread.redirector;
    let found = match find(redirector, visitor.client, request.uri().path(), host(request)).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let now = redirector.domain_cache.now();
    if !found.link.is_live(now) {
        return not_live(redirector, &found, now, request.uri().path());
    }
    let (has_password, is_look) = (found.link.password().is_some(), is_look(request));
    if found.link.is_limited() && (has_password || is_look) {
        // A password form for a link whose visits are used up would be pointless, and a preview
        // must not use up a visit.
        match redirector.admission.is_spent(found.link.id).await {
            Ok(false) => {}
            Ok(true) => return gone(redirector, &found.place, &found.wanted, request.uri().path()),
            Err(_) => return unavailable(redirector),
        }
    }
    match (has_password, is_look && found.link.is_limited()) {
        (true, _) => pages::ask_password(false),
        (false, true) => limited(),
        (false, false) => lead(thread, visitor, request, now, &found).await,
    }
}

/// Answers a visitor of a link that does not redirect now. A link that is not valid yet is not
/// gone: until it begins, it is answered like an unknown code.
pub(crate) fn not_live(redirector: &Redirector, found: &FoundLink, now: Timestamp, path: &str) -> Answer {
    let FoundLink { link, place, wanted } = found;
    if link.was_live(now) {
        gone(redirector, place, wanted, path)
    } else {
        not_found(redirector, place, Unmatched::Code(wanted), path)
    }
}

/// Returns whether a request is a look at the link, by a link checker or for a chat preview, and
/// not a visit. A look at a link with a visit limit does not get the link's target: it uses up no
/// visit, and any client can claim to be a preview.
fn is_look<B>(request: &Request<B>) -> bool {
    let user_agent = std::str::from_utf8(bytes(request.headers(), &USER_AGENT));
    *request.method() == Method::HEAD || user_agent.is_ok_and(is_preview)
}

/// A link that a visitor requested, live or not.
pub(crate) struct FoundLink {
    pub(crate) link: Arc<Link>,
    pub(crate) place: VisitorDomain,
    pub(crate) wanted: LookupKey,
}

/// Looks up the link of a path.
///
/// # Errors
/// Returns the answer to send if the path has no link, the link is blocked, the client has used up
/// its budget of unknown codes, or it is unknown whether the link exists (I8).
pub(crate) async fn find(
    redirector: &Redirector,
    client: IpAddr,
    path: &str,
    host: Option<&str>,
) -> Result<FoundLink, Answer> {
    let question = redirector.domain_cache.question(host, path);
    let Question { place, wanted, .. } = &question;
    let Some(wanted) = wanted else {
        return Err(not_found(redirector, place, Unmatched::Regular, path));
    };
    let is_disabled = place.domain.settings.disabled;
    if is_disabled && !place.is_sure {
        return Err(unavailable(redirector));
    }
    if is_disabled {
        return Err(not_found(redirector, place, Unmatched::Code(wanted), path));
    }
    // A link in the cache exists, and looking it up costs no query.
    let is_free = redirector.lookup.knows_on(place.domain.id, wanted);
    if !is_free && let Err(wait) = redirector.clients.spend(client) {
        return Err(hold_back(slow_down(redirector, wait)));
    }
    let found = redirector.lookup.find_on(place.domain.id, wanted).await;
    if !is_free && !matches!(found, Ok(None)) {
        redirector.clients.give_back(client);
    }
    let is_stopped = matches!(&found, Ok(Some(link)) if is_stopped(redirector, link));
    let leads = |link: &Link| link.is_live(redirector.domain_cache.now()) && !is_stopped;
    match found {
        // The link may be the default domain's while the host belongs to another domain.
        Ok(Some(link)) if !leads(&link) && !redirector.domain_cache.may_deny(&question) => {
            Err(unavailable(redirector))
        }
        Ok(Some(_)) if is_stopped => Err(taken_down(redirector)),
        Ok(Some(link)) => Ok(FoundLink { link, place: place.clone(), wanted: wanted.clone() }),
        Ok(None) if redirector.domain_cache.may_deny(&question) => {
            Err(not_found(redirector, place, Unmatched::Code(wanted), path))
        }
        Ok(None) | Err(LookupError::NoStore | LookupError::Overloaded) => Err(unavailable(redirector)),
    }
}

/// Returns whether the link is blocked, or its only target is denied by a target rule.
fn is_stopped(redirector: &Redirector, link: &Link) -> bool {
    let is_denied =
        || link.rules().is_empty() && !link.is_deleted() && !redirector.lookup.allows(&link.long_url);
    link.is_blocked() || is_denied()
}

/// Redirects a visitor who may follow a live link, unless the link's visits are used up.
pub(crate) async fn lead<B>(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<B>,
    now: Timestamp,
    FoundLink { link, place, wanted }: &FoundLink,
) -> Answer {
    let redirector = &*thread.redirector;
    let path = request.uri().path();
    let target = match target(redirector, visitor, request, now, link) {
        Ok(target) => target,
        Err(NoTarget::Denied) => return taken_down(redirector),
        Err(NoTarget::Unfit) => return not_found(redirector, place, Unmatched::Code(wanted), path),
    };
    // The visit is counted last, so that a visit without a target does not count.
    if link.is_limited() {
        match redirector.admission.admit(link.id).await {
            Ok(true) => {}
            Ok(false) => return gone(redirector, place, wanted, path),
            Err(_) => return unavailable(redirector),
        }
    }
    note(thread, visitor.client, &request_head(request), now, link.id);
    let status = link.status().and_then(|status| StatusCode::from_u16(status.code()).ok());
    redirect(status.unwrap_or(redirector.status), target)
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
    redirector: &Redirector,
    visitor: Visitor,
    request: &Request<B>,
    now: Timestamp,
    link: &Link,
) -> Result<HeaderValue, NoTarget> {
    let query = request.uri().query().unwrap_or("");
    let text = |name| std::str::from_utf8(bytes(request.headers(), name)).unwrap_or("");
    let located =
        if asks_where(link.rules()) { redirector.geoip.locate(visitor.client) } else { Location::default() };
    // A proxy in front knows the country of its clients better than the GeoIP file does.
    let told = redirector.clients.country(visitor.peer, request.headers());
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
    if !redirector.lookup.allows(long_url) {
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

/// Returns the host of a request: that of its target URI, or else its `Host` header.
#[must_use]
pub fn host<B>(request: &Request<B>) -> Option<&str> {
    let named = || request.headers().get(HOST)?.to_str().ok();
    request.uri().authority().map(|authority| authority.as_str()).or_else(named)
}

#[inline]
fn note(thread: &ThreadContext, client: IpAddr, head: &RequestHead<'_>, at: Timestamp, link: LinkId) {
    let RequestHead { user_agent, referer, .. } = *head;
    thread.visits.note((!head.is_head).then_some(Visit { link, at, client, user_agent, referer }));
}

fn bytes<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a [u8] {
    headers.get(name).map_or(&[], HeaderValue::as_bytes)
}
