//! The steps of a decision, as an explanation has them.

use jiff::Timestamp;
use links::{Authority, Block, Domain, Finding, Link, LinkState, LongUrl, OtherName, OtherWay, Tried};
use lookup::LookupKey;

use crate::{Redirector, asked::Asked};

/// Returns which domain a host belongs to, with its name; before it the host, if that is another.
pub(crate) fn domain_step(redirector: &Redirector, asked: &Asked<'_>, visited: &Domain) -> (Finding, String) {
    let domain_cache = &redirector.domain_cache;
    let is_default_name = || asked.host.is_some_and(|host| domain_cache.is_default_name(host));
    let finding = match visited.id.is_default() {
        _ if visited.settings.disabled => Finding::DomainDisabled,
        false => Finding::DomainOther,
        true if is_default_name() => Finding::DomainDefault,
        true => Finding::DomainUnknown,
    };
    let name = visited.authority.as_ref().map_or(domain_cache.default_name(), Authority::as_str);
    match asked.host.filter(|_| finding == Finding::DomainUnknown) {
        Some(host) => (finding, format!("{host} → {name}")),
        None => (finding, name.to_owned()),
    }
}

/// Returns which name found a link, with the names that were tried: up to `found`, or to the path
/// itself if a link has it. It does not tell which of the names before it have links.
pub(crate) fn name_step(
    asked: &Asked<'_>,
    is_name: bool,
    others: &[(OtherName<'_>, LookupKey)],
    found: Option<&OtherName<'_>>,
) -> (Finding, String) {
    let Some(found) = found else { return (Finding::NameExact, asked.path.to_owned()) };
    let finding = match found.way {
        OtherWay::Case => Finding::NameLowered,
        OtherWay::Trailing => Finding::NameTrailing,
        OtherWay::Prefix => Finding::NamePrefix,
        OtherWay::CatchAll => Finding::NameCatchAll,
    };
    let before = others.iter().map(|(other, _)| other).take_while(|other| *other != found);
    (finding, tried(asked, is_name, before.chain([found])))
}

/// Returns that no link was found, with all names that were tried.
pub(crate) fn unknown_step(
    asked: &Asked<'_>,
    is_name: bool,
    others: &[(OtherName<'_>, LookupKey)],
) -> (Finding, String) {
    (Finding::NameUnknown, tried(asked, is_name, others.iter().map(|(other, _)| other)))
}

fn tried<'a>(asked: &Asked<'a>, is_name: bool, others: impl Iterator<Item = &'a OtherName<'a>>) -> String {
    let path = is_name.then_some(asked.path);
    path.into_iter().chain(others.map(|other| other.path.as_str())).collect::<Vec<_>>().join(" ")
}

/// Returns the state of a link, with the time that it depends on, and the reason of a takedown.
pub(crate) fn state_step(link: &Link, now: Timestamp) -> (Finding, String) {
    let (state, details) = (link.state(now), link.details());
    let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let takedown = |block: &Block| format!("{} ({})", block.at, block.reason);
    let detail = match state {
        LinkState::Deleted => text(details.deleted_at),
        LinkState::Blocked => details.blocked.as_ref().map(takedown),
        LinkState::Expired => text(details.valid_until),
        LinkState::NotYetValid => text(details.valid_since),
        LinkState::Disabled | LinkState::Live => None,
    };
    (state.into(), detail.unwrap_or_default())
}

/// Notes that the target rules deny a target, and by which pattern.
pub(crate) fn note_denied(redirector: &Redirector, asked: &Asked<'_>, long_url: &LongUrl) {
    asked.step(|| (Finding::TargetDenied, long_url.as_str().to_owned()));
    if asked.log.is_some()
        && let Some(pattern) = redirector.lookup.denying_pattern(long_url)
    {
        asked.step(|| (Finding::TargetPattern, pattern));
    }
}

/// Returns what came of a rule, with its number and the condition that does not hold.
pub(crate) fn rule_step(index: usize, tried: Tried<'_>) -> (Finding, String) {
    let number = index + 1;
    match tried {
        Tried::Matches => (Finding::RuleMatches, number.to_string()),
        Tried::Unreadable => (Finding::RuleUnreadable, number.to_string()),
        Tried::Differs(condition) => {
            let (kind, key, value) = condition.parts();
            let parts: Vec<&str> = [Some(kind), key, value].into_iter().flatten().collect();
            (Finding::RuleDiffers, format!("{number}: {}", parts.join(" ")))
        }
    }
}
