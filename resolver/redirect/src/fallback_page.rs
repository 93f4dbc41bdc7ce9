//! Visitors whom no link leads on: they see a page, or are sent where the domain or the keyspace
//! says.

use std::{collections::HashMap, time::Duration};

use app::{domain_cache::Place, lookup::Wanted};
use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER},
};
use links::{Authority, LongUrl, Redirects, fill_placeholders, location};
use web::{Answer, HTML, answer, budgets::Spent, retry_later};

use crate::{Redirector, follow::redirect, pages};

/// Where visitors go that no link leads on, beyond what is said of their domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FallbackTargets {
    /// From any domain that says nothing of its own.
    pub redirects: Redirects,
    /// From codes of these keyspaces (C3).
    pub keyspaces: HashMap<String, String>,
}

/// Why a request matched no link.
pub(crate) enum Unmatched<'a> {
    /// At the domain itself.
    Base,
    /// On a path that no link could have.
    Regular,
    /// On one that no link has, or none that leads anywhere.
    Code(&'a Wanted),
}

/// Answers a visitor whom no link leads on.
pub(crate) fn not_found(redirector: &Redirector, place: &Place, why: Unmatched<'_>, path: &str) -> Answer {
    redirector.metrics.not_found.increment(1);
    fallback_redirect(redirector, place, &why, path)
        .unwrap_or_else(|| uncached_page(StatusCode::NOT_FOUND, pages::NOT_FOUND))
}

/// A page that nobody is to keep: there may be a link at any moment.
fn uncached_page(status: StatusCode, page: &'static str) -> Answer {
    let mut answer = answer(status, HTML, page);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Answers a visitor of a link that led somewhere once, or will.
pub(crate) fn gone(redirector: &Redirector, place: &Place, wanted: &Wanted, path: &str) -> Answer {
    if !redirector.tells_gone {
        return not_found(redirector, place, Unmatched::Code(wanted), path);
    }
    redirector.metrics.not_found.increment(1);
    // Keyspaces and flags say where visitors go of codes in general; that there was this link is
    // what --tell-gone is for. Only its own domain knows better.
    let own = place.domain.settings.redirects.invalid_short_url.as_deref();
    own.and_then(|target| redirect_to(redirector, place, target, path))
        .unwrap_or_else(|| uncached_page(StatusCode::GONE, pages::GONE))
}

/// Answers a visitor of a link that an operator took down, or whose target a rule denies: 410
/// whatever `--tell-gone` says, and never a redirect. Where a domain or a keyspace sends its lost
/// visitors is not the operator's choice alone.
pub(crate) fn taken_down(redirector: &Redirector) -> Answer {
    redirector.metrics.not_found.increment(1);
    uncached_page(StatusCode::GONE, pages::TAKEN_DOWN)
}

/// Answers a look at a link that may be followed only so often.
pub(crate) fn limited() -> Answer {
    uncached_page(StatusCode::OK, pages::LIMITED)
}

/// Answers a visitor of the domain itself.
#[must_use]
pub fn home(redirector: &Redirector, host: Option<&str>) -> Answer {
    let place = redirector.directory.place(host);
    fallback_redirect(redirector, &place, &Unmatched::Base, "/")
        .unwrap_or_else(|| answer(StatusCode::OK, HTML, pages::HOME))
}

fn fallback_redirect(
    redirector: &Redirector,
    place: &Place,
    why: &Unmatched<'_>,
    path: &str,
) -> Option<Answer> {
    let (own, all) = (&place.domain.settings.redirects, &redirector.fallbacks.redirects);
    let first = |own: &Option<String>, all: &Option<String>| own.clone().or_else(|| all.clone());
    let target = match why {
        Unmatched::Base => first(&own.base_url, &all.base_url),
        Unmatched::Regular => first(&own.regular_404, &all.regular_404),
        Unmatched::Code(wanted) => {
            // A keyspace belongs to a site, which knows better than the domain what its visitors
            // look for.
            let keyspace = redirector
                .lookup
                .keyspace_of(wanted)
                .and_then(|name| redirector.fallbacks.keyspaces.get(name.as_str()));
            keyspace.cloned().or_else(|| first(&own.invalid_short_url, &all.invalid_short_url))
        }
    }?;
    redirect_to(redirector, place, &target, path)
}

fn redirect_to(redirector: &Redirector, place: &Place, target: &str, path: &str) -> Option<Answer> {
    let name = place.domain.authority.as_ref().map_or(redirector.directory.default_name(), Authority::as_str);
    let target = fill_placeholders(target, name, path)?;
    if !redirector.lookup.allows(&LongUrl::from_stored(target.clone())) {
        // The operator's rules about targets bind where visitors are sent without a link as well.
        return None;
    }
    let header = HeaderValue::try_from(location(&target).as_ref()).ok()?;
    Some(redirect(redirector.status, header))
}

/// Not a 404: whether the link exists is not known.
pub(crate) fn unavailable(redirector: &Redirector) -> Answer {
    redirector.metrics.unavailable.increment(1);
    retry_later(answer(StatusCode::SERVICE_UNAVAILABLE, HTML, pages::UNAVAILABLE))
}

/// As much is under way as may be, for this client or for all.
pub(crate) fn too_much(redirector: &Redirector, spent: Spent) -> Answer {
    match spent {
        Spent::Own => busy(Duration::ZERO),
        Spent::All => unavailable(redirector),
    }
}

/// Not a 404: whether the link exists was not looked up.
pub(crate) fn slow_down(redirector: &Redirector, wait: Duration) -> Answer {
    redirector.metrics.unknown_refused.increment(1);
    refused(pages::SLOW_DOWN, wait)
}

/// A client has spent a budget that has nothing to do with codes that do not exist.
pub(crate) fn busy(wait: Duration) -> Answer {
    refused(pages::TOO_MUCH, wait)
}

fn refused(page: &'static str, wait: Duration) -> Answer {
    let mut answer = answer(StatusCode::TOO_MANY_REQUESTS, HTML, page);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    answer
}
