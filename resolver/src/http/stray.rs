//! Visitors whom no link leads on: they see a page, or are sent where the domain or the keyspace says.

use std::{collections::HashMap, time::Duration};

use app::{domain_cache::Place, lookup::Wanted};
use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER},
};
use links::{Authority, LongUrl, Redirects, fill_placeholders, location};

use super::{Answer, App, answer, budgets::Spent, pages, redirect::redirect, retry_later};

/// Where visitors go that no link leads on, beyond what is said of their domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrayTargets {
    /// From any domain that says nothing of its own.
    pub redirects: Redirects,
    /// From codes of these keyspaces (C3).
    pub keyspaces: HashMap<String, String>,
}

/// In which way a visitor is lost.
pub(super) enum Stray<'a> {
    /// At the domain itself.
    Base,
    /// On a path that no link could have.
    Regular,
    /// On one that no link has, or none that leads anywhere.
    Code(&'a Wanted),
}

/// Answers a visitor whom no link leads on.
pub(super) fn stray(app: &App, place: &Place, how: Stray<'_>, path: &str) -> Answer {
    app.metrics.not_found.increment(1);
    elsewhere(app, place, &how, path).unwrap_or_else(|| passing(StatusCode::NOT_FOUND, pages::NOT_FOUND))
}

/// A page that nobody is to keep: there may be a link at any moment.
fn passing(status: StatusCode, page: &'static str) -> Answer {
    let mut answer = answer(status, pages::HTML, page);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Answers a visitor of a link that led somewhere once, or will.
pub(super) fn gone(app: &App, place: &Place, wanted: &Wanted, path: &str) -> Answer {
    if !app.tells_gone {
        return stray(app, place, Stray::Code(wanted), path);
    }
    app.metrics.not_found.increment(1);
    // Keyspaces and flags say where visitors go of codes in general; that there was this link is what --tell-gone is for. Only its own domain
    // knows better.
    let own = place.domain.settings.redirects.invalid_short_url.as_deref();
    own.and_then(|target| lead_to(app, place, target, path))
        .unwrap_or_else(|| passing(StatusCode::GONE, pages::GONE))
}

/// Answers a visitor of a link that an operator took down, or whose target a rule denies: 410
/// whatever `--tell-gone` says, and never a redirect. Where a domain or a keyspace sends its lost
/// visitors is not the operator's choice alone.
pub(super) fn taken_down(app: &App) -> Answer {
    app.metrics.not_found.increment(1);
    passing(StatusCode::GONE, pages::TAKEN_DOWN)
}

/// Answers a look at a link that may be followed only so often.
pub(super) fn look() -> Answer {
    passing(StatusCode::OK, pages::LIMITED)
}

/// Answers a visitor of the domain itself.
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
            // A keyspace belongs to a site, which knows better than the domain what its visitors look for.
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
        // The operator's rules about targets bind where visitors are sent without a link as well.
        return None;
    }
    let header = HeaderValue::try_from(location(&target).as_ref()).ok()?;
    Some(redirect(app.redirect_status, header))
}

/// Not a 404: whether the link exists is not known.
pub(super) fn unavailable(app: &App) -> Answer {
    app.metrics.unavailable.increment(1);
    retry_later(answer(StatusCode::SERVICE_UNAVAILABLE, pages::HTML, pages::UNAVAILABLE))
}

/// As much is under way as may be, for this client or for all.
pub(super) fn too_much(app: &App, spent: Spent) -> Answer {
    match spent {
        Spent::Own => busy(Duration::ZERO),
        Spent::All => unavailable(app),
    }
}

/// Not a 404: whether the link exists was not looked up.
pub(super) fn slow_down(app: &App, wait: Duration) -> Answer {
    app.metrics.unknown_refused.increment(1);
    refused(pages::SLOW_DOWN, wait)
}

/// A client has spent a budget that has nothing to do with codes that do not exist.
pub(super) fn busy(wait: Duration) -> Answer {
    refused(pages::TOO_MUCH, wait)
}

fn refused(page: &'static str, wait: Duration) -> Answer {
    let mut answer = answer(StatusCode::TOO_MANY_REQUESTS, pages::HTML, page);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    answer
}
