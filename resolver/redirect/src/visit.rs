//! Visits: what becomes of a request, as it is recorded.
//!
//! 1. A visit is recorded where its answer is decided, whichever way it takes: on the fast path, in
//!    [`follow`](crate::follow()) or for a password.
//! 2. A request for the pixel of a link is a visit of the link ([`pixel`](crate::pixel)).
//! 3. HEAD requests and prefetches are no visits. Neither are password forms that are shown,
//!    previews of links with a visit limit, and refusals that say nothing about the link (400, 429,
//!    503).
//! 4. A text is recorded only if the link does not imply it: the path of a redirect unless it is
//!    the link's name alone, and the location unless it is the link's own long URL.
//! 5. Keys of the API are not recorded: the query of a path that clients send them to is left out.

use codes::LinkId;
use hyper::{
    Request,
    header::{HeaderValue, LOCATION},
};
use jiff::Timestamp;
use links::{DomainId, Link};
use visits::{Event, Outcome};
use web::Answer;

use crate::{ThreadContext, Visitor, fast_path::RequestHead, request::request_head};

/// The name of YOURLS' API. A request for it comes here if the API is off, or with a path that is
/// not quite its own.
const KEYS_IN_QUERY: &[u8] = b"yourls-api.php";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit<'a> {
    pub(crate) outcome: Outcome,
    /// The link that was found, also if it did not redirect.
    pub(crate) link: Option<LinkId>,
    /// The domain of the link, or else that of the visited host.
    pub(crate) domain: DomainId,
    /// Whether the link was found by another name than its own.
    pub(crate) is_other_name: bool,
    /// The number of the redirect rule that matched, counted from 1; 0 for none.
    pub(crate) rule: u8,
    /// The location that was sent, unless it is the link's own long URL.
    pub(crate) target: &'a [u8],
}

impl Visit<'static> {
    /// Describes a request whose link was found.
    pub(crate) fn of(link: &Link, outcome: Outcome) -> Self {
        Self { link: Some(link.id), ..Self::without_link(link.domain(), outcome) }
    }

    /// Describes a request for which no link was found.
    pub(crate) fn without_link(domain: DomainId, outcome: Outcome) -> Self {
        Self { outcome, link: None, domain, is_other_name: false, rule: 0, target: &[] }
    }
}

/// The answer to a request that no link redirects.
pub(crate) struct Refusal {
    /// In a box, because a refusal is the error of many functions.
    pub(crate) answer: Box<Answer>,
    /// `None` if the request is no visit.
    pub(crate) visit: Option<Visit<'static>>,
}

impl From<Answer> for Refusal {
    /// Builds the refusal of a request that is no visit.
    fn from(answer: Answer) -> Self {
        Self { answer: Box::new(answer), visit: None }
    }
}

impl Refusal {
    pub(crate) fn new(answer: Answer, visit: Visit<'static>) -> Self {
        Self { answer: Box::new(answer), visit: Some(visit) }
    }

    /// Returns whether no link has the path of the request.
    pub(crate) fn is_unknown(&self) -> bool {
        let outcome = self.visit.map(|visit| (visit.outcome, visit.link));
        matches!(outcome, Some((Outcome::UnknownCode | Outcome::InvalidPath, None)))
    }
}

/// Records the visit of a request that no link redirects, and returns the answer to it.
pub(crate) fn refuse<B>(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<B>,
    Refusal { answer, visit }: Refusal,
) -> Answer {
    if let Some(visit) = visit {
        let target = answer.headers().get(LOCATION).map_or(&[][..], HeaderValue::as_bytes);
        let now = thread.redirector.domain_cache.now();
        note(thread, visitor, &request_head(request), now, Visit { target, ..visit });
    }
    *answer
}

/// Records a visit, and counts the redirect if it is one of a link.
#[inline]
pub(crate) fn note(
    thread: &ThreadContext,
    visitor: Visitor,
    head: &RequestHead<'_>,
    at: Timestamp,
    Visit { outcome, link, domain, is_other_name, rule, target }: Visit<'_>,
) {
    let rules = &thread.redirector.visits.rules;
    if head.is_head || head.is_prefetch || !rules.record(outcome, visitor.client, head.query) {
        if outcome == Outcome::Redirected {
            thread.visits.note_redirect();
        }
        return;
    }
    // With an escaped character the path is not the link's name as it is written. Visits that the
    // link did not redirect are listed without it, or are of its pixel.
    let is_redirect = link.is_some() && outcome == Outcome::Redirected;
    let is_name = is_redirect && !is_other_name && head.query.is_none() && !head.path.contains('%');
    thread.visits.note(&Event {
        at: at.as_microsecond(),
        outcome,
        link,
        domain,
        rule,
        client: visitor.client,
        country: visitor.country,
        is_opted_out: rules.opt_out && head.is_opted_out,
        user_agent: head.user_agent.filter(|_| rules.user_agents).unwrap_or_default(),
        referrer: head.referer.filter(|_| rules.referrers).unwrap_or_default(),
        languages: head.accept_language.unwrap_or_default(),
        request: if is_name { &[] } else { recorded_path(head).as_bytes() },
        target,
    });
}

/// Returns the path with the query, which is left out where clients of YOURLS send their API keys:
/// a key that sees the visits of a domain must not get the keys of its tenants.
fn recorded_path<'a>(head: &RequestHead<'a>) -> &'a str {
    let mut parts = head.path.as_bytes().windows(KEYS_IN_QUERY.len());
    let is_for_keys = head.query.is_some() && parts.any(|part| part.eq_ignore_ascii_case(KEYS_IN_QUERY));
    if is_for_keys { head.path } else { head.path_and_query }
}

#[cfg(test)]
mod tests;
