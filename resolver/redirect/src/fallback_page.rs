//! Answers to requests that no link redirects: a built-in page, or a redirect to a fallback target
//! of the domain, the keyspace or the operator.

use std::{collections::HashMap, time::Duration};

use app::{domain_cache::VisitorDomain, lookup::LookupKey};
use hyper::{
    Request, StatusCode,
    header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER},
};
use links::{Authority, LongUrl, Redirects, fill_placeholders, location};
use visits::Outcome;
use web::{Answer, HTML, answer, budgets::ExceededShare, retry_later};

use crate::{
    Redirector, ThreadContext, Visitor, pages,
    redirection::redirect,
    request::host,
    visit::{Missed, Refusal, refuse},
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
    place: &VisitorDomain,
    why: Unmatched<'_>,
    path: &str,
) -> Answer {
    redirector.metrics.not_found.increment(1);
    fallback_redirect(redirector, place, &why, path)
        .unwrap_or_else(|| uncached_page(StatusCode::NOT_FOUND, pages::NOT_FOUND))
}

/// Builds a page with `Cache-Control: no-store`, because a link may redirect there at any moment.
fn uncached_page(status: StatusCode, page: &'static str) -> Answer {
    let mut answer = answer(status, HTML, page);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Answers a visitor of a link that exists but does not redirect. The answer is 410 if `tells_gone`
/// is set, and otherwise that of [`not_found`].
pub(crate) fn gone(redirector: &Redirector, place: &VisitorDomain, wanted: &LookupKey, path: &str) -> Answer {
    if !redirector.tells_gone {
        return not_found(redirector, place, Unmatched::Code(wanted), path);
    }
    redirector.metrics.not_found.increment(1);
    // A domain's own target for invalid short URLs takes precedence over 410. The targets of
    // keyspaces and flags do not: they are for codes in general, while --tell-gone reports that
    // this link existed.
    let own = place.domain.settings.redirects.invalid_short_url.as_deref();
    own.and_then(|target| redirect_to(redirector, place, target, path))
        .unwrap_or_else(|| uncached_page(StatusCode::GONE, pages::GONE))
}

/// Answers 410 to a visitor of a link that an operator took down, or whose target a rule denies. It
/// does so whatever `--tell-gone` says, and never redirects: the fallback target of a domain or a
/// keyspace is not the operator's choice alone.
pub(crate) fn taken_down(redirector: &Redirector) -> Answer {
    redirector.metrics.not_found.increment(1);
    uncached_page(StatusCode::GONE, pages::TAKEN_DOWN)
}

/// Answers a preview of a link with a visit limit, without the link's target.
pub(crate) fn limited() -> Answer {
    uncached_page(StatusCode::OK, pages::LIMITED)
}

/// Answers a visitor of the root path of a domain.
pub fn home<B>(thread: &ThreadContext, visitor: Visitor, request: &Request<B>) -> Answer {
    let redirector = &thread.redirector;
    let place = redirector.domain_cache.place(host(request));
    let answer = fallback_redirect(redirector, &place, &Unmatched::Base, "/")
        .unwrap_or_else(|| answer(StatusCode::OK, HTML, pages::HOME));
    let missed = Missed { outcome: Outcome::BaseUrl, link: None, domain: place.domain.id };
    refuse(thread, visitor, request, Refusal::new(answer, missed))
}

/// Returns the redirect to the first fallback target that can be used.
fn fallback_redirect(
    redirector: &Redirector,
    place: &VisitorDomain,
    why: &Unmatched<'_>,
    path: &str,
) -> Option<Answer> {
    let (own, all) = (&place.domain.settings.redirects, &redirector.fallbacks.redirects);
    let targets = match why {
        Unmatched::Base => [None, own.base_url.as_ref(), all.base_url.as_ref()],
        Unmatched::Regular => [None, own.regular_404.as_ref(), all.regular_404.as_ref()],
        Unmatched::Code(wanted) => {
            // A keyspace belongs to a site, whose target suits the visitors of its codes better
            // than the domain's.
            let keyspace = redirector
                .lookup
                .keyspace_of(wanted)
                .and_then(|name| redirector.fallbacks.keyspaces.get(name.as_str()));
            [keyspace, own.invalid_short_url.as_ref(), all.invalid_short_url.as_ref()]
        }
    };
    targets.into_iter().flatten().find_map(|target| redirect_to(redirector, place, target, path))
}

/// Returns the redirect to a fallback target. Returns `None` if a target rule denies it, or if it
/// is too long with this path.
fn redirect_to(redirector: &Redirector, place: &VisitorDomain, target: &str, path: &str) -> Option<Answer> {
    let name =
        place.domain.authority.as_ref().map_or(redirector.domain_cache.default_name(), Authority::as_str);
    let target = fill_placeholders(target, name, path)?;
    if !redirector.lookup.allows(&LongUrl::from_stored(target.clone())) {
        // The operator's target rules apply to fallback targets as well.
        return None;
    }
    let header = HeaderValue::try_from(location(&target).as_ref()).ok()?;
    Some(redirect(redirector.status, header))
}

/// Answers 503 with `Retry-After`. It is not a 404, because it is unknown whether the link exists
/// (I8).
pub(crate) fn unavailable(redirector: &Redirector) -> Answer {
    redirector.metrics.unavailable.increment(1);
    retry_later(answer(StatusCode::SERVICE_UNAVAILABLE, HTML, pages::UNAVAILABLE))
}

/// Answers a request for which a budget has no room: 429 if the client's own share is used up, and
/// 503 if the share of all clients is.
pub(crate) fn too_much(redirector: &Redirector, spent: ExceededShare) -> Answer {
    match spent {
        ExceededShare::Own => busy(Duration::ZERO),
        ExceededShare::All => unavailable(redirector),
    }
}

/// Answers 429 to a client that has requested too many unknown codes. It is not a 404, because the
/// link was not looked up.
pub(crate) fn slow_down(redirector: &Redirector, wait: Duration) -> Answer {
    redirector.metrics.unknown_refused.increment(1);
    refused(pages::SLOW_DOWN, wait)
}

/// Answers 429 to a client that has used up a budget other than that of unknown codes.
pub(crate) fn busy(wait: Duration) -> Answer {
    refused(pages::TOO_MUCH, wait)
}

fn refused(page: &'static str, wait: Duration) -> Answer {
    let mut answer = answer(StatusCode::TOO_MANY_REQUESTS, HTML, page);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    answer
}
