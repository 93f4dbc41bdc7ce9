//! Redirects: `GET|HEAD /{code}`.
//!
//! Almost every redirect is of a link in the thread's cache ([`follow_cached`]). It is answered in
//! the poll in which its request was read: by [`fast_path`](crate::fast_path) or, on a connection
//! that also carries other requests, by [`answer_cached`]. [`follow`] answers all other requests.

use std::{borrow::Cow, ptr, sync::Arc};

use codes::Code;
use geoip::{CountryCode, Place};
use hyper::{
    Method, Request, StatusCode,
    header::{CACHE_CONTROL, HeaderValue, LOCATION},
};
use jiff::Timestamp;
use links::{
    Buckets, Domain, DomainId, Facts, Finding, Link, LinkState, LongUrl, OtherName, Rule, StoredObject as _,
    asks_where, choose, location, location_with_query,
};
use lookup::{CachedTarget, LookupError, LookupKey, domain_cache::Question};
use visits::Outcome;
use web::{Answer, cors, empty, hold_back, visitor_page::VisitorPage};

use crate::{
    Redirector, ThreadContext, Visitor,
    added_query::add_query,
    asked::Asked,
    fallback_page::{
        Unmatched, ask_password, ended, not_found, refuse_prefetch, slow_down, taken_down, unavailable,
    },
    fast_path::RequestHead,
    preview,
    request::{host, is_prefetch, path_before, request_head},
    social_preview::social_preview,
    steps::{domain_step, name_step, note_denied, rule_step, state_step, unknown_step},
    visit::{Refusal, Visit, note, refuse},
};

/// Calls `respond` with the target of a cached link, and records the visit if the result is `Some`.
/// Never waits.
///
/// Returns `None` if the caches lack the link, or if the request needs [`follow`]: for another
/// domain, or to forward its query.
pub fn follow_cached<T>(
    thread: &ThreadContext,
    visitor: Visitor,
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
        respond(target, now).inspect(|_| {
            // A link that is answered from here has no rules, and is one of the default domain.
            let visit = Visit::without_link(DomainId::DEFAULT, Outcome::Redirected);
            note(thread, visitor, head, now, Visit { link: Some(target.link), ..visit });
        })
    })
}

/// Returns the redirect if the caches have the link.
pub fn answer_cached<B>(thread: &ThreadContext, visitor: Visitor, request: &Request<B>) -> Option<Answer> {
    let head = request_head(request);
    if !matches!(*request.method(), Method::GET | Method::HEAD) || head.is_prefetch {
        return None;
    }
    follow_cached(thread, visitor, &head, |target, _| {
        let location = HeaderValue::from_bytes(&target.location).ok()?;
        Some(redirect(thread.redirector.status, location))
    })
}

/// Returns the `Cache-Control` value of redirects with this status, which limits how long clients
/// keep them. Returns `None` for statuses that clients do not cache.
pub fn cache_control(status: StatusCode) -> Option<&'static str> {
    // A permanent redirect that browsers kept forever could never be edited.
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT)
        .then_some("private,max-age=30")
}

pub(crate) fn redirect(status: StatusCode, target: HeaderValue) -> Answer {
    let mut redirect = empty(status);
    redirect.headers_mut().insert(LOCATION, target);
    if let Some(value) = cache_control(status) {
        redirect.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(value));
    }
    redirect
}

/// Answers a request for a link, with a lookup in the store if necessary.
///
/// A prefetch is refused: a browser that has an answer does not ask again when the person follows
/// the link, and nobody would count that visit.
pub async fn follow<B>(thread: &ThreadContext, visitor: Visitor, request: &Request<B>) -> Answer {
    if is_prefetch(request.headers()) {
        return refuse_prefetch();
    }
    let answered = try_to_follow(thread, visitor, request).await;
    let mut answer = answered.unwrap_or_else(|refusal| refuse(thread, visitor, request, refusal));
    if thread.redirector.domain_cache.is_cross_origin(host(request)) {
        cors::allow(&mut answer);
    }
    answer
}

async fn try_to_follow<B>(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<B>,
) -> Result<Answer, Refusal> {
    let redirector = &*thread.redirector;
    let asked = Asked::of(redirector, visitor, request);
    match decide(redirector, &asked).await? {
        Decision::Show(answer) => Ok(answer),
        Decision::AskPassword(..) => Ok(ask_password(false)),
        Decision::Lead(found, now) => lead_visitor(thread, visitor, request, now, &found).await,
    }
}

/// What is done with a request that is not refused.
pub(crate) enum Decision {
    /// It gets a page about the link.
    Show(Answer),
    /// It has to come with the link's password.
    AskPassword(FoundLink, Timestamp),
    /// It is led to a target of the link, unless the link's visits are used up.
    Lead(FoundLink, Timestamp),
}

/// Decides about a request. It uses up no visit of the link.
pub(crate) async fn decide(redirector: &Redirector, asked: &Asked<'_>) -> Result<Decision, Refusal> {
    let found = match find(redirector, asked).await {
        Ok(found) => found,
        // A slug may end in a plus itself, so a preview is of what has no link.
        Err(refusal) if refusal.is_unknown() && path_before(asked.path, preview::SUFFIX).is_some() => {
            let shown = preview::preview(redirector, asked).await?;
            // The preview's link exists, so refund the unknown-code budget.
            redirector.clients.give_back(asked.client);
            return Ok(Decision::Show(shown));
        }
        Err(refusal) => return Err(refusal),
    };
    let now = asked.now(redirector);
    check_live(redirector, &found, now, asked)?;
    let (has_password, is_limited) = (found.link.password().is_some(), found.link.is_limited());
    let is_look = is_limited && asked.is_look();
    let confirms = is_limited && found.visited.settings.confirm_limited && !asked.is_deliberate;
    if has_password || is_look || confirms {
        // A form for a link whose visits are used up would be pointless, and a preview must not use
        // up a visit.
        check_visits_left(redirector, &found, asked).await?;
    }
    let unfurls = asked.unfurls(&found.link);
    Ok(match (has_password, is_look && !unfurls, confirms && !unfurls) {
        (true, ..) => {
            asked.step(|| (Finding::PasswordAsked, String::new()));
            Decision::AskPassword(found, now)
        }
        (false, true, _) => {
            asked.step(|| (Finding::VisitsCrawler, String::new()));
            Decision::Show(VisitorPage::Limited.answer(StatusCode::OK))
        }
        (false, false, true) => {
            asked.step(|| (Finding::VisitsConfirm, String::new()));
            Decision::Show(VisitorPage::Confirm.answer(StatusCode::OK))
        }
        (false, false, false) => Decision::Lead(found, now),
    })
}

/// Checks that a link redirects now. A link that is not valid yet is not gone: until it begins, it
/// is answered like an unknown code.
pub(crate) fn check_live(
    redirector: &Redirector,
    found: &FoundLink,
    now: Timestamp,
    asked: &Asked<'_>,
) -> Result<(), Refusal> {
    let FoundLink { link, visited, key, .. } = found;
    let Some(outcome) = outcome_of(link.state(now)) else { return Ok(()) };
    let was_live = link.details().valid_since.is_none_or(|since| since <= now);
    let answer = if was_live {
        ended(redirector, found, outcome, asked)
    } else {
        not_found(redirector, visited, Unmatched::Code(key), asked)
    };
    Err(Refusal::new(answer, Visit::of(link, outcome)))
}

/// Returns what a visit of a link in this state counts as; `None` if the link redirects.
pub(crate) fn outcome_of(state: LinkState) -> Option<Outcome> {
    Some(match state {
        LinkState::Deleted => Outcome::UnknownCode,
        LinkState::Blocked => Outcome::TakenDown,
        LinkState::Disabled => Outcome::Disabled,
        LinkState::Expired => Outcome::Expired,
        LinkState::NotYetValid => Outcome::NotYetValid,
        LinkState::Live => return None,
    })
}

/// Checks that a link has visits left, without using up one.
pub(crate) async fn check_visits_left(
    redirector: &Redirector,
    found: &FoundLink,
    asked: &Asked<'_>,
) -> Result<(), Refusal> {
    let Some(most) = found.link.details().max_visits else { return Ok(()) };
    match redirector.visit_limiter.is_spent(found.link.id).await {
        Ok(false) => {
            asked.step(|| (Finding::VisitsLeft, most.to_string()));
            Ok(())
        }
        Ok(true) => {
            asked.step(|| (Finding::VisitsSpent, most.to_string()));
            Err(spent(redirector, found, asked))
        }
        Err(_) => Err(unavailable(redirector).into()),
    }
}

fn spent(redirector: &Redirector, found: &FoundLink, asked: &Asked<'_>) -> Refusal {
    let outcome = Outcome::LimitReached;
    let answer = ended(redirector, found, outcome, asked);
    Refusal::new(answer, Visit::of(&found.link, outcome))
}

/// A link that a visitor requested, live or not.
pub(crate) struct FoundLink {
    pub(crate) link: Arc<Link>,
    pub(crate) visited: Arc<Domain>,
    pub(crate) key: LookupKey,
    /// Whether the path is another name than the link's own.
    is_other_name: bool,
    /// The path behind the link's name, with its slash, as it was sent; empty if there is none.
    behind: String,
}

impl FoundLink {
    /// Returns where a rule, or else the link itself, leads with the path behind the link's name.
    pub(crate) fn target<'a>(&'a self, rule: Option<&'a Rule>) -> Option<(&'a LongUrl, Cow<'a, str>)> {
        self.link.target(rule, &self.behind, self.visited.settings.extra_path)
    }
}

/// Looks up the link of a path, or of another name that the path may be meant as.
/// Returns the refusal if the path has no link, the link is blocked, the client has used up its
/// budget of unknown codes, or it is unknown whether the link exists (I8).
pub(crate) async fn find(redirector: &Redirector, asked: &Asked<'_>) -> Result<FoundLink, Refusal> {
    let Asked { client, path, host, .. } = *asked;
    if redirector.lookup.is_cut_off() {
        return Err(unavailable(redirector).into());
    }
    let question = redirector.domain_cache.question(host, path);
    let Question { domain: visited, is_sure, wanted, .. } = &question;
    asked.step(|| domain_step(redirector, asked, visited));
    let others = redirector.domain_cache.other_names(&question, path);
    let without_link = |why: Unmatched<'_>, outcome: Outcome| {
        let visit = Visit::without_link(visited.id, outcome);
        Refusal::new(not_found(redirector, visited, why, asked), visit)
    };
    let Some(key) = wanted.as_ref().or(others.first().map(|(_, key)| key)) else {
        asked.step(|| (Finding::NameImpossible, path.to_owned()));
        return Err(without_link(Unmatched::Regular, Outcome::InvalidPath));
    };
    let unknown = || match wanted {
        Some(key) => without_link(Unmatched::Code(key), Outcome::UnknownCode),
        None if path == "/" => without_link(Unmatched::Base, Outcome::BaseUrl),
        None => without_link(Unmatched::Regular, Outcome::InvalidPath),
    };
    let is_disabled = visited.settings.disabled;
    if (is_disabled && !is_sure) || visited.settings.is_of_later_release() {
        return Err(unavailable(redirector).into());
    }
    if is_disabled {
        return Err(unknown());
    }
    // A link in the cache exists, and looking it up costs no query.
    let is_free = wanted.as_ref().is_some_and(|wanted| redirector.lookup.knows_on(visited.id, wanted));
    if !is_free && let Err(wait) = redirector.clients.spend(client) {
        return Err(hold_back(slow_down(redirector, wait)).into());
    }
    let found = find_named(redirector, &question, &others, asked).await;
    if !is_free && !matches!(found, Ok(None)) {
        redirector.clients.give_back(client);
    }
    let may_deny = |tried: &[_]| redirector.domain_cache.may_deny(&question, tried);
    match found {
        Ok(Some((link, other))) => {
            asked.found(&link);
            asked.step(|| name_step(asked, wanted.is_some(), &others, other));
            // The others were tried only if no link has the path itself, or one that is gone.
            let tried = if other.is_some() || link.is_deleted() { &others[..] } else { &[] };
            check_shown(redirector, &link, asked, || may_deny(tried))?;
            let behind = other.map_or("", |other| other.behind).to_owned();
            let is_other_name = other.is_some();
            Ok(FoundLink { link, visited: visited.clone(), key: key.clone(), is_other_name, behind })
        }
        Ok(None) if may_deny(&others) => {
            asked.step(|| unknown_step(asked, wanted.is_some(), &others));
            Err(unknown())
        }
        Ok(None) | Err(LookupError::NoStore | LookupError::Overloaded) => {
            asked.step(|| (Finding::NameUnanswered, path.to_owned()));
            Err(unavailable(redirector).into())
        }
    }
}

/// A link, and its other name if the path itself is none of its names.
type NamedLink<'n, 'a> = (Arc<Link>, Option<&'n OtherName<'a>>);

/// Returns the link that has the name, or else another one that the path may be meant as.
async fn find_named<'n, 'a>(
    redirector: &Redirector,
    question: &Question,
    others: &'n [(OtherName<'a>, LookupKey)],
    asked: &Asked<'_>,
) -> Result<Option<NamedLink<'n, 'a>>, LookupError> {
    let (domain, of_domain) = (question.domain.id, question.domain.settings.extra_path);
    let named = match &question.wanted {
        Some(key) => redirector.lookup.find_on(domain, key).await?,
        None => None,
    };
    let is_meant = |link: &Arc<Link>| link.is_blocked() || !link.is_deleted() && link.takes("", of_domain);
    if named.as_ref().is_some_and(is_meant) {
        return Ok(named.map(|link| (link, None)));
    }
    if !others.is_empty() {
        let means = |other: &OtherName<'a>, link: &Link| {
            let is_meant = other.means(link, of_domain);
            if !is_meant && !other.behind.is_empty() && !link.is_deleted() {
                asked.step(|| (Finding::NameRefused, other.path.clone()));
            }
            is_meant
        };
        match redirector.lookup.find_other(domain, others, means).await? {
            Some((other, link)) if redirector.domain_cache.may_deny(question, others) => {
                return Ok(Some((link, Some(other))));
            }
            Some(_) => return Err(LookupError::NoStore),
            None => {}
        }
    }
    // The answer for a deleted link may say that it was deleted (`--tell-gone`).
    Ok(named.filter(|link| link.is_deleted()).map(|link| (link, None)))
}

/// Checks that a link that was found may be shown to a visitor.
fn check_shown(
    redirector: &Redirector,
    link: &Link,
    asked: &Asked<'_>,
    may_deny: impl Fn() -> bool,
) -> Result<(), Refusal> {
    let now = asked.now(redirector);
    let is_stopped = is_stopped(redirector, link);
    let is_live = link.is_live(now);
    asked.step(|| state_step(link, now));
    // The link may be the default domain's while the host belongs to another domain.
    if (!is_live || is_stopped) && !may_deny() {
        return Err(unavailable(redirector).into());
    }
    if is_stopped {
        if !link.is_blocked() {
            note_denied(redirector, asked, &link.long_url);
        }
        return Err(Refusal::new(taken_down(redirector), Visit::of(link, Outcome::TakenDown)));
    }
    // Details that this release cannot read may protect the link.
    if is_live && link.details().is_of_later_release() {
        asked.step(|| (Finding::StateUnreadable, String::new()));
        return Err(unavailable(redirector).into());
    }
    Ok(())
}

/// Returns whether the link is blocked, or its only target is denied by a target rule.
fn is_stopped(redirector: &Redirector, link: &Link) -> bool {
    let is_denied =
        || link.rules().is_empty() && !link.is_deleted() && !redirector.lookup.allows(&link.long_url);
    link.is_blocked() || is_denied()
}

/// Redirects a visitor who may follow a live link, unless the link's visits are used up.
pub(crate) async fn lead_visitor<B>(
    thread: &ThreadContext,
    visitor: Visitor,
    request: &Request<B>,
    now: Timestamp,
    found: &FoundLink,
) -> Result<Answer, Refusal> {
    let link = &found.link;
    let redirector = &*thread.redirector;
    let asked = Asked::of(redirector, visitor, request);
    let to = target(redirector, &asked, now, found)?;
    let (is_limited, unfurls) = (link.is_limited(), asked.unfurls(link));
    // The visit is counted last, so that a visit without a target does not count.
    if is_limited && !unfurls {
        match redirector.visit_limiter.admit(link.id).await {
            Ok(true) => {}
            Ok(false) => return Err(spent(redirector, found, &asked)),
            Err(_) => return Err(unavailable(redirector).into()),
        }
    }
    let target = if to.is_own { &[][..] } else { to.location.as_bytes() };
    let (rule, is_other_name) = (to.rule, found.is_other_name);
    let visit = Visit { rule, target, is_other_name, ..Visit::of(link, Outcome::Redirected) };
    if !(is_limited && unfurls) {
        note(thread, visitor, &request_head(request), now, visit);
    }
    if unfurls {
        return Ok(social_preview(redirector, &asked, link));
    }
    Ok(redirect(status_of(redirector, link), to.location))
}

/// Returns the status of a link's redirects.
pub(crate) fn status_of(redirector: &Redirector, link: &Link) -> StatusCode {
    let own = link.details().status.and_then(|status| StatusCode::from_u16(status.into()).ok());
    own.unwrap_or(redirector.status)
}

pub(crate) struct Destination {
    pub(crate) location: HeaderValue,
    /// The number of the rule that matched, counted from 1; 0 for none.
    rule: u8,
    /// Whether it is the link's own long URL, without the visitor's query. The domain may add
    /// parameters, which are the same for every visit.
    is_own: bool,
}

/// Returns where this visitor is redirected to: by the link's first matching rule, or else to the
/// link's own long URL. The error is the refusal if a target rule denies it.
pub(crate) fn target(
    redirector: &Redirector,
    asked: &Asked<'_>,
    now: Timestamp,
    found: &FoundLink,
) -> Result<Destination, Refusal> {
    let (link, query) = (&found.link, asked.query);
    let text = |bytes| str::from_utf8(bytes).unwrap_or("");
    let located =
        if asks_where(link.rules()) { redirector.geoip.place(asked.client) } else { Place::default() };
    let facts = Facts {
        user_agent: text(asked.user_agent),
        accept_language: text(asked.languages),
        query,
        ip: asked.client,
        // A proxy in front knows the country of its clients better than the GeoIP file does.
        country: asked.country.or(located.country.as_ref().map(CountryCode::as_str)),
        city: located.city.as_deref(),
        now,
        buckets: Buckets::new(redirector.lookup.mint.bucket_key(), link.id),
        path: &found.behind,
        scheme: asked.scheme,
    };
    let rule = choose(link.rules(), &facts, |index, tried| asked.step(|| rule_step(index, tried)));
    let Some((long_url, placed)) = found.target(rule) else {
        // It was found for a rule about the path whose other conditions do not hold.
        let name = || redirector.lookup.name_of(link).unwrap_or_default();
        asked.step(|| (Finding::NameRefused, format!("/{}", name())));
        let answer = not_found(redirector, &found.visited, Unmatched::Code(&found.key), asked);
        return Err(Refusal::new(answer, Visit::of(link, Outcome::UnknownCode)));
    };
    if !redirector.lookup.allows(long_url) {
        note_denied(redirector, asked, long_url);
        return Err(Refusal::new(taken_down(redirector), Visit::of(link, Outcome::TakenDown)));
    }
    asked.step(|| (Finding::TargetAllowed, long_url.as_str().to_owned()));
    if !found.behind.is_empty() {
        asked.step(|| (Finding::PathApplied, found.behind.clone()));
    }
    let merged = if link.forward_query { location_with_query(&placed, query) } else { None };
    if !query.is_empty() {
        let finding = if merged.is_some() { Finding::QueryForwarded } else { Finding::QueryDropped };
        asked.step(|| (finding, query.to_owned()));
    }
    let is_own = rule.is_none() && merged.is_none() && matches!(placed, Cow::Borrowed(_));
    let location = add_query(redirector, asked, found, merged.unwrap_or_else(|| location(&placed)));
    let location = HeaderValue::try_from(location);
    let location = location.expect("a URI reference has visible ASCII characters only");
    Ok(Destination { location, rule: rule.map_or(0, |rule| number_of(rule, link.rules())), is_own })
}

/// Returns the number of a rule among those of its link, counted from 1 and at most 255.
fn number_of(rule: &Rule, rules: &[Rule]) -> u8 {
    let index = rules.iter().position(|other| ptr::eq(other, rule)).unwrap_or(0);
    u8::try_from(index + 1).unwrap_or(u8::MAX)
}
