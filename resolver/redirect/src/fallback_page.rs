//! Answers to requests that no link redirects: a built-in page, or a redirect to a fallback target
//! of the domain, the keyspace or the operator.

use std::{collections::HashMap, time::Duration};

use hyper::{
    Request, StatusCode,
    header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER},
};
use limits::ExceededShare;
use links::{Authority, Domain, Finding, Redirects, fill_placeholders, location};
use lookup::{LookupKey, domain_cache::PageHost};
use visits::Outcome;
use web::{Answer, TEXT, answer, retry_later, visitor_page::VisitorPage};

use crate::{
    Redirector, ThreadContext, Visitor,
    asked::Asked,
    follow::{FoundLink, redirect},
    request::host,
    visit::{Refusal, Visit, refuse},
};

/// The operator's fallback targets, in addition to those in the settings of each domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FallbackTargets {
    /// Targets for every domain that has none of its own.
    pub redirects: Redirects,
    /// Targets for codes that match no link, by the name of their keyspace (C3). They take
    /// precedence over those of the domain.
    pub keyspaces: HashMap<String, String>,
}

/// Why a request matched no link.
pub(crate) enum Unmatched<'a> {
    /// The request is for the root path of the domain.
    Base,
    /// No link can have the path.
    Regular,
    /// No link with this code or slug exists, or it leads nowhere.
    Code(&'a LookupKey),
}

/// Answers a visitor whose request matches no link: with a redirect to a fallback target, or else
/// 404.
pub(crate) fn not_found(
    redirector: &Redirector,
    visited: &Domain,
    why: Unmatched<'_>,
    asked: &Asked<'_>,
) -> Answer {
    redirector.metrics.not_found.increment(1);
    fallback_redirect(redirector, visited, &why, asked)
        .unwrap_or_else(|| VisitorPage::NotFound.answer(StatusCode::NOT_FOUND))
}

/// Answers a visitor of a link that was live once and does not redirect any more. One that has
/// expired, or whose visits are used up, leads to the URL for that. Otherwise the answer is 410 if
/// `tells_gone` is set, and else that of [`not_found`].
pub(crate) fn ended(redirector: &Redirector, found: &FoundLink, why: Outcome, asked: &Asked<'_>) -> Answer {
    let visited = &found.visited;
    let (page, has_url) = match why {
        Outcome::Expired => (VisitorPage::Expired, true),
        Outcome::LimitReached => (VisitorPage::Spent, true),
        Outcome::TakenDown => (VisitorPage::TakenDown, false),
        _ => (VisitorPage::Gone, false),
    };
    if has_url && let Some(redirect) = expired_redirect(redirector, found, asked) {
        redirector.metrics.not_found.increment(1);
        return redirect;
    }
    if !redirector.tells_gone {
        return not_found(redirector, visited, Unmatched::Code(&found.key), asked);
    }
    redirector.metrics.not_found.increment(1);
    // A domain's own target for invalid short URLs takes precedence over 410. The targets of
    // keyspaces and flags do not: they are for codes in general, while --tell-gone reports that
    // this link existed.
    let own = visited.settings.redirects.invalid_short_url.as_ref();
    first_usable(redirector, visited, [(Finding::FallbackDomain, own)], asked)
        .unwrap_or_else(|| page.answer(StatusCode::GONE))
}

/// Returns the redirect to the URL for visitors of a link that has expired or whose visits are used
/// up: that of the link, or else of the visited domain. The target rules may deny either. It is
/// temporary, whatever the status of the link's redirects: the link may be prolonged.
fn expired_redirect(redirector: &Redirector, found: &FoundLink, asked: &Asked<'_>) -> Option<Answer> {
    let own = found.link.details().expired_url.as_ref();
    let of_domain = found.visited.settings.expired_url.as_ref();
    for (finding, url) in [(Finding::FallbackExpiredLink, own), (Finding::FallbackExpiredDomain, of_domain)] {
        let Some(url) = url else { continue };
        let is_allowed = redirector.lookup.allows(url);
        let finding = if is_allowed { finding } else { Finding::FallbackUnusable };
        asked.step(|| (finding, url.as_str().to_owned()));
        if is_allowed {
            let location = HeaderValue::try_from(location(url.as_str()));
            let location = location.expect("a URI reference has visible ASCII characters only");
            return Some(redirect(StatusCode::FOUND, location));
        }
    }
    None
}

/// Answers 410 to a visitor of a link that an operator took down, or whose target a rule denies. It
/// does so whatever `--tell-gone` says, and never redirects: the fallback target of a domain or a
/// keyspace is not the operator's choice alone.
pub(crate) fn taken_down(redirector: &Redirector) -> Answer {
    redirector.metrics.not_found.increment(1);
    VisitorPage::TakenDown.answer(StatusCode::GONE)
}

/// Refuses a prefetch. Browsers keep no answer of this status, and a proxy in front does not take
/// it for a failure of this server.
pub(crate) fn refuse_prefetch() -> Answer {
    let mut answer = answer(StatusCode::FORBIDDEN, TEXT, "not fetched ahead: open the link to follow it\n");
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Asks a visitor for the password of a link. After a wrong one the status is 403, so that programs
/// can tell that it was wrong.
pub(crate) fn ask_password(is_wrong: bool) -> Answer {
    let status = if is_wrong { StatusCode::FORBIDDEN } else { StatusCode::OK };
    VisitorPage::Password { is_wrong }.answer(status)
}

/// Returns whether the link that catches all paths of a domain answers its root as well: the domain
/// has no target of its own for it.
pub fn catches_root(redirector: &Redirector, host: Option<&str>) -> bool {
    let (visited, _) = redirector.domain_cache.place(host);
    visited.settings.catch_all && visited.settings.redirects.base_url.is_none()
}

/// Answers a visitor of the root path of a domain. Returns also whether the home page belongs
/// there: on the host of the public URL, unless the operator has chosen another target.
pub fn home<B>(thread: &ThreadContext, visitor: Visitor, request: &Request<B>) -> (Answer, bool) {
    let (redirector, host) = (&thread.redirector, host(request));
    let (visited, _) = redirector.domain_cache.place(host);
    let asked = Asked::name(visitor.client, "/", host);
    let redirect = fallback_redirect(redirector, &visited, &Unmatched::Base, &asked);
    let shows_home = redirect.is_none() && redirector.domain_cache.page_host(host) == PageHost::Own;
    let answer = redirect.unwrap_or_else(|| VisitorPage::Home.answer(StatusCode::OK));
    let visit = Visit::without_link(visited.id, Outcome::BaseUrl);
    (refuse(thread, visitor, request, Refusal::new(answer, visit)), shows_home)
}

/// Returns the redirect to the first fallback target that can be used.
pub(crate) fn fallback_redirect(
    redirector: &Redirector,
    visited: &Domain,
    why: &Unmatched<'_>,
    asked: &Asked<'_>,
) -> Option<Answer> {
    let (own, all) = (&visited.settings.redirects, &redirector.fallbacks.redirects);
    let [keyspace, own, all] = match why {
        Unmatched::Base => [None, own.base_url.as_ref(), all.base_url.as_ref()],
        Unmatched::Regular => [None, own.regular_404.as_ref(), all.regular_404.as_ref()],
        Unmatched::Code(key) => {
            // A keyspace belongs to a site, whose target suits the visitors of its codes better
            // than the domain's.
            let keyspace = redirector
                .lookup
                .keyspace_of(key)
                .and_then(|name| redirector.fallbacks.keyspaces.get(name.as_str()));
            [keyspace, own.invalid_short_url.as_ref(), all.invalid_short_url.as_ref()]
        }
    };
    let (keyspace, own) = ((Finding::FallbackKeyspace, keyspace), (Finding::FallbackDomain, own));
    let targets = [keyspace, own, (Finding::FallbackOperator, all)];
    first_usable(redirector, visited, targets, asked)
}

/// Returns the redirect to the first of these targets that can be used.
fn first_usable<const COUNT: usize>(
    redirector: &Redirector,
    visited: &Domain,
    targets: [(Finding, Option<&String>); COUNT],
    asked: &Asked<'_>,
) -> Option<Answer> {
    for (finding, target) in targets {
        let Some(target) = target else { continue };
        let redirect = redirect_to(redirector, visited, target, asked.path);
        let finding = if redirect.is_some() { finding } else { Finding::FallbackUnusable };
        asked.step(|| (finding, target.clone()));
        if redirect.is_some() {
            return redirect;
        }
    }
    asked.step(|| (Finding::FallbackNone, String::new()));
    None
}

/// Returns the redirect to a fallback target. Returns `None` if it is too long with this path, or
/// if the operator's target rules deny where browsers go from here.
fn redirect_to(redirector: &Redirector, visited: &Domain, target: &str, path: &str) -> Option<Answer> {
    let name = visited.authority.as_ref().map_or(redirector.domain_cache.default_name(), Authority::as_str);
    let location = location(&fill_placeholders(target, name, path)?);
    if !redirector.lookup.allows_from(name, &location) {
        return None;
    }
    Some(redirect(redirector.status, HeaderValue::try_from(location).ok()?))
}

/// Answers 503 with `Retry-After`. It is not a 404, because it is unknown whether the link exists
/// (I8).
pub(crate) fn unavailable(redirector: &Redirector) -> Answer {
    redirector.metrics.unavailable.increment(1);
    retry_later(VisitorPage::Unavailable.answer(StatusCode::SERVICE_UNAVAILABLE))
}

/// Answers a request for which a budget has no room: 429 if the client's own share is used up, and
/// 503 if the share of all clients is.
pub(crate) fn too_much(redirector: &Redirector, spent: ExceededShare) -> Answer {
    match spent {
        ExceededShare::Own => refused(VisitorPage::TooMuch, Duration::ZERO),
        ExceededShare::All => unavailable(redirector),
    }
}

/// Answers 429 to a client that has requested too many unknown codes. It is not a 404, because the
/// link was not looked up.
pub(crate) fn slow_down(redirector: &Redirector, wait: Duration) -> Answer {
    redirector.metrics.unknown_refused.increment(1);
    refused(VisitorPage::SlowDown, wait)
}

/// Answers 429 to a client that has used up a budget.
pub(crate) fn refused(page: VisitorPage, wait: Duration) -> Answer {
    let mut answer = page.answer(StatusCode::TOO_MANY_REQUESTS);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    answer
}
