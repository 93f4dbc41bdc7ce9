//! Answers to requests without a redirect: a fallback page, or the fallback target of the domain or
//! the keyspace.

use std::{collections::HashMap, time::Duration};

use app::{domain_cache::Place, lookup::Wanted};
use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER},
};
use links::{Authority, LongUrl, Redirects, fill_placeholders, location};

use super::{Answer, App, answer, budgets::Spent, pages, redirect::redirect, retry_later};

/// Fallback targets, apart from those of individual domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrayTargets {
    /// The targets for domains without their own.
    pub redirects: Redirects,
    /// The targets for codes of a keyspace, by the keyspace's name (C3).
    pub keyspaces: HashMap<String, String>,
}

/// Why a request matched no link.
pub(super) enum Stray<'a> {
    /// The request was for the domain itself.
    Base,
    /// The path cannot be a link's.
    Regular,
    /// No live link has this code or slug.
    Code(&'a Wanted),
}

/// Answers a request that matched no link: redirects to the fallback target, or shows the 404 page.
pub(super) fn stray(app: &App, place: &Place, how: Stray<'_>, path: &str) -> Answer {
    app.metrics.not_found.increment(1);
    elsewhere(app, place, &how, path).unwrap_or_else(|| passing(StatusCode::NOT_FOUND, pages::NOT_FOUND))
}

/// Builds a page that must not be cached, because the link may appear at any moment.
fn passing(status: StatusCode, page: &'static str) -> Answer {
    let mut answer = answer(status, pages::HTML, page);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Answers a request for a link that exists but is not live: 410 with `--tell-gone`, else as for an
/// unknown link.
pub(super) fn gone(app: &App, place: &Place, wanted: &Wanted, path: &str) -> Answer {
    if !app.tells_gone {
        return stray(app, place, Stray::Code(wanted), path);
    }
    app.metrics.not_found.increment(1);
    // The fallback targets of keyspaces and flags are for unknown codes in general, whereas
    // `--tell-gone` is meant to show that this link existed. Only the domain's own fallback target
    // takes precedence.
    let own = place.domain.settings.redirects.invalid_short_url.as_deref();
    own.and_then(|target| lead_to(app, place, target, path))
        .unwrap_or_else(|| passing(StatusCode::GONE, pages::GONE))
}

/// Answers a request for a blocked link, or for one whose target is denied: 410 whatever
/// `--tell-gone` says, and never a redirect. The fallback targets of a domain or a keyspace are not
/// the operator's choice alone.
pub(super) fn taken_down(app: &App) -> Answer {
    app.metrics.not_found.increment(1);
    passing(StatusCode::GONE, pages::TAKEN_DOWN)
}

/// Answers a preview of a link with a visit limit.
pub(super) fn look() -> Answer {
    passing(StatusCode::OK, pages::LIMITED)
}

/// Answers a request for the domain itself.
pub(super) fn base(app: &App, host: Option<&str>) -> Answer {
    let place = app.directory.place(host);
    elsewhere(app, &place, &Stray::Base, "/")
        .unwrap_or_else(|| answer(StatusCode::OK, pages::HTML, pages::HOME))
}

fn elsewhere(app: &App, place: &Place, how: &Stray<'_>, path: &str) -> Option<Answer> {
    let (own, all) = (&place.domain.settings.redirects, &app.stray_targets.redirects);
    let first = |own: &Option<String>, all: &Option<String>| own.clone().or_else(|| all.clone());
    let target = match how {
        Stray::Base => first(&own.base_url, &all.base_url),
        Stray::Regular => first(&own.regular_404, &all.regular_404),
        Stray::Code(wanted) => {
            // A keyspace belongs to one site, so its fallback target is more specific than the
            // domain's.
            let keyspace = app
                .lookup
                .keyspace_of(wanted)
                .and_then(|name| app.stray_targets.keyspaces.get(name.as_str()));
            keyspace.cloned().or_else(|| first(&own.invalid_short_url, &all.invalid_short_url))
        }
    }?;
    lead_to(app, place, &target, path)
}

fn lead_to(app: &App, place: &Place, target: &str, path: &str) -> Option<Answer> {
    let name = place.domain.authority.as_ref().map_or(app.directory.default_name(), Authority::as_str);
    let target = fill_placeholders(target, name, path)?;
    if !app.lookup.allows(&LongUrl::from_stored(target.clone())) {
        // The operator's target rules apply to fallback targets too.
        return None;
    }
    let header = HeaderValue::try_from(location(&target).as_ref()).ok()?;
    Some(redirect(app.redirect_status, header))
}

/// Answers 503, because it is unknown whether the link exists (I8).
pub(super) fn unavailable(app: &App) -> Answer {
    app.metrics.unavailable.increment(1);
    retry_later(answer(StatusCode::SERVICE_UNAVAILABLE, pages::HTML, pages::UNAVAILABLE))
}

/// Answers a request that exceeds a concurrency limit: 429 for the client's own limit, 503 for that
/// of all.
pub(super) fn too_much(app: &App, spent: Spent) -> Answer {
    match spent {
        Spent::Own => busy(Duration::ZERO),
        Spent::All => unavailable(app),
    }
}

/// Answers 429 to a client with too many unknown codes. It is not a 404, because the link was not
/// looked up.
pub(super) fn slow_down(app: &App, wait: Duration) -> Answer {
    app.metrics.unknown_refused.increment(1);
    refused(pages::SLOW_DOWN, wait)
}

/// Answers 429 to a client that has used up a budget other than that of unknown codes.
pub(super) fn busy(wait: Duration) -> Answer {
    refused(pages::TOO_MUCH, wait)
}

fn refused(page: &'static str, wait: Duration) -> Answer {
    let mut answer = answer(StatusCode::TOO_MANY_REQUESTS, pages::HTML, page);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    answer
}
