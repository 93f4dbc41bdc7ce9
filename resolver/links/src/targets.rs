//! Destination policy: rules that allow or deny hosts as targets of links.
//!
//! 1. A pattern is a host, or `*.` and a domain, which matches every host below the domain but not
//!    the domain itself, as in certificates.
//! 2. The longest pattern that matches a host decides, so that a rule can have exceptions. An exact
//!    host takes precedence over any `*.` pattern.
//! 3. `*` matches every host and is shorter than any other pattern. Denying `*` makes the other
//!    rules an allowlist. Hosts that no pattern matches are allowed.
//! 4. A rule judges the hosts that browsers go to, however a target is written
//!    (`links/src/destination.rs`). While there is any rule, a target that cannot be judged is
//!    refused. One that names no host, such as `tel:`, is judged by `*` alone.
//! 5. The rules also apply to existing links. A denied link stops redirecting as soon as a resolver
//!    has read the rule, and redirects again when the rule is removed. Redirects consult [`Gate`].

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use url::Host;

use crate::{
    Invalid, LongUrl,
    destination::{Base, hosts, name_of},
};

/// Pattern that matches every host.
const ALL: &str = "*";

/// A target rule: allows or denies the hosts of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule {
    pattern: Box<str>,
    allowed: bool,
}

const NOT_A_PATTERN: Invalid = Invalid::because(
    "expected a host such as example.com, *.example.com for all below it, or * for every host",
);

impl TargetRule {
    /// Maximum length of a pattern, in bytes.
    pub const MAX_LEN: usize = 255;

    /// Parses a pattern. Hosts are in lower case and Punycode, without trailing dots, as in URLs.
    pub fn parse(pattern: &str, allowed: bool) -> Result<Self, Invalid> {
        let pattern = pattern.trim();
        if pattern == ALL {
            return Ok(Self { pattern: ALL.into(), allowed });
        }
        match normal(pattern) {
            Some(kept) if kept.len() <= Self::MAX_LEN => Ok(Self { pattern: kept.into(), allowed }),
            _ => Err(NOT_A_PATTERN),
        }
    }

    /// Returns the pattern as it is kept.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns `true` if the rule allows its hosts.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }
}

/// Returns a pattern other than `*` as hosts have it; `None` if it names no hosts.
fn normal(pattern: &str) -> Option<String> {
    let (star, host) = pattern.strip_prefix("*.").map_or(("", pattern), |host| ("*.", host));
    let host = Host::parse(host).ok()?;
    let name = name_of(&host)?;
    let is_name = matches!(host, Host::Domain(_));
    let fits = !name.contains('*') && (is_name || star.is_empty());
    fits.then(|| format!("{star}{name}"))
}

/// Set of all target rules, indexed by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    rules: HashMap<Box<str>, bool>,
}

impl Targets {
    /// Builds the set from its rules.
    pub fn new(rules: &[TargetRule]) -> Self {
        let mut set = HashMap::new();
        for TargetRule { pattern, allowed } in rules {
            // Early releases stored several spellings of a pattern: the stricter rule counts.
            *set.entry(pattern.clone()).or_insert(true) &= allowed;
        }
        Self { rules: set }
    }

    /// Returns `true` if visitors may be led to this target. `base` serves the redirect; without
    /// one, a relative target cannot be judged.
    pub fn allow(&self, target: &str, base: Option<&Base>) -> bool {
        if self.rules.is_empty() {
            return true;
        }
        hosts(target, base).is_some_and(|hosts| self.pattern_against(&hosts).is_none())
    }

    /// Returns the pattern of the rule that denies a target; `None` if no rule does. A target that
    /// cannot be judged is refused without one.
    pub fn denying_pattern(&self, target: &str) -> Option<&str> {
        self.pattern_against(&hosts(target, None)?)
    }

    /// Returns the pattern that denies one of the hosts of a target. If it names no host, `*` alone
    /// can deny it.
    fn pattern_against(&self, hosts: &[String]) -> Option<&str> {
        let denying = |host: &str| self.deciding_rule(host).filter(|(_, allowed)| !allowed);
        let found = if hosts.is_empty() { denying(ALL) } else { hosts.iter().find_map(|host| denying(host)) };
        found.map(|(pattern, _)| pattern)
    }

    /// Returns the longest pattern that matches a host, and whether it allows its hosts.
    fn deciding_rule(&self, host: &str) -> Option<(&str, bool)> {
        let exact = self.rule(host);
        if exact.is_some() {
            return exact;
        }
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            let below = self.rule(&format!("*.{parent}"));
            if below.is_some() {
                return below;
            }
            rest = parent;
        }
        self.rule(ALL)
    }

    fn rule(&self, pattern: &str) -> Option<(&str, bool)> {
        self.rules.get_key_value(pattern).map(|(pattern, allowed)| (&**pattern, *allowed))
    }
}

/// Target rules as redirects evaluate them, replaceable at run time.
///
/// The verdict is computed once for each cached link and each set of rules, so that redirecting a
/// cached link parses no URL.
#[derive(Debug, Default)]
pub struct Gate {
    targets: RwLock<Arc<Targets>>,
    /// Twice the number of changes, plus one while there are rules, which one load shows.
    state: AtomicU64,
}

/// Cached verdict about one URL, with the state of the [`Gate`] under which it was computed. Usable
/// for that URL and that gate only.
#[derive(Debug, Default)]
pub struct Verdict(AtomicU64);

impl Gate {
    /// Replaces the rules. The caller must afterwards invalidate copies of links that the former
    /// rules allowed.
    pub fn replace(&self, targets: Targets) {
        let has_rules = u64::from(!targets.rules.is_empty());
        let mut place = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(targets);
        let changes = self.state.load(Ordering::Relaxed) / 2 + 1;
        self.state.store(changes * 2 + has_rules, Ordering::Release);
    }

    /// Returns `true` if redirects may lead to this URL.
    pub fn allows(&self, url: &LongUrl) -> bool {
        self.current().is_none_or(|targets| targets.allow(url.as_str(), None))
    }

    /// Returns `true` if redirects that the host of a domain serves may have this location.
    pub fn allows_from(&self, authority: &str, location: &str) -> bool {
        self.current().is_none_or(|targets| targets.allow(location, Base::new(authority).as_ref()))
    }

    /// Returns the pattern of the rule that denies a URL, if one does.
    pub fn denying_pattern(&self, url: &LongUrl) -> Option<String> {
        let targets = self.current()?;
        targets.denying_pattern(url.as_str()).map(str::to_owned)
    }

    fn current(&self) -> Option<Arc<Targets>> {
        let has_rules = self.state.load(Ordering::Acquire) % 2 == 1;
        has_rules.then(|| Arc::clone(&self.targets.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns `true` if redirects may lead to this URL, and caches the result in `verdict`. For
    /// URLs that are checked often.
    pub fn allows_again(&self, url: &LongUrl, verdict: &Verdict) -> bool {
        // Loaded before the rules: a verdict of newer rules under an older state is only computed
        // once more.
        let state = self.state.load(Ordering::Acquire);
        if state.is_multiple_of(2) {
            return true;
        }
        let last = verdict.0.load(Ordering::Relaxed);
        if last / 2 == state {
            return last % 2 == 1;
        }
        let is_allowed = self.allows(url);
        verdict.0.store(state * 2 + u64::from(is_allowed), Ordering::Relaxed);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(rules: &[(&str, bool)]) -> Targets {
        let rules: Vec<_> =
            rules.iter().map(|(pattern, allowed)| TargetRule::parse(pattern, *allowed).unwrap()).collect();
        Targets::new(&rules)
    }

    #[test]
    fn the_longest_pattern_that_fits_decides() {
        let mut rules =
            vec![("*.evil.com", false), ("good.evil.com.", true), ("*.very.good.evil.com", false)];
        for (host, allowed) in [
            ("good.evil.com", true),
            ("good.evil.com...", true),
            ("bad.evil.com", false),
            ("a.b.evil.com", false),
            ("evil.com", true),
            ("x.very.good.evil.com", false),
            ("notevil.com", true),
        ] {
            assert_eq!(targets(&rules).allow(&format!("https://{host}/"), None), allowed, "{host}");
        }
        rules.push(("*", false));
        let listed = targets(&rules);
        let allow = |host: &str| listed.allow(&format!("https://{host}/"), None);
        assert!(allow("good.evil.com") && !allow("notevil.com") && !allow("evil.com"));
        assert!(!listed.allow("tel:+1", None));
        let denied = targets(&[("*.evil.com", false), ("10.0.0.1", false)]);
        for (host, allowed) in
            [("evil.com", true), ("a.evil.com", false), ("10.0.0.1", false), ("other.org", true)]
        {
            assert_eq!(denied.allow(&format!("https://{host}/"), None), allowed, "{host}");
        }
        assert!(Targets::default().allow("anything", None));
    }

    #[test]
    fn a_denial_names_the_pattern_that_decides() {
        let rules = targets(&[("*.evil.com", false), ("good.evil.com", true), ("evil.com", false)]);
        for (target, pattern) in [
            ("https://a.b.evil.com/", Some("*.evil.com")),
            ("https://evil.com/", Some("evil.com")),
            ("https://good.evil.com/", None),
            ("https://other.org/", None),
            ("tel:+1", None),
            ("intent:x", None),
        ] {
            assert_eq!(rules.denying_pattern(target), pattern, "{target}");
        }
        let rules = targets(&[("*", false), ("ok.example", true)]);
        for (target, pattern) in
            [("tel:+1", Some("*")), ("https://other.org/", Some("*")), ("https://ok.example/", None)]
        {
            assert_eq!(rules.denying_pattern(target), pattern, "{target}");
        }
    }

    #[test]
    fn relative_targets_are_judged_as_their_own_host_and_the_unclear_are_refused() {
        let (gate, denied) = (Gate::default(), targets(&[("denied.example", false), ("own.example", false)]));
        assert!(gate.allows_from("(no host)", "//denied.example"), "there is no rule");
        gate.replace(denied);
        for (authority, location, allowed) in [
            ("ok.example", "/lost", true),
            ("ok.example", "https://ok.example/", true),
            ("ok.example", "tel:+1", true),
            ("ok.example", "//denied.example", false),
            ("ok.example", "/\\denied.example..", false),
            ("ok.example", "https:denied.example", false),
            ("ok.example", "blob:https://ok.example/1", false),
            ("own.example:8080", "/lost", false),
            ("(no host)", "/lost", false),
            ("(no host)", "https://ok.example", true),
        ] {
            assert_eq!(gate.allows_from(authority, location), allowed, "{location} on {authority}");
        }
    }

    #[test]
    fn a_verdict_holds_until_the_rules_change() {
        let (gate, verdict) = (Gate::default(), Verdict::default());
        let url = LongUrl::from_stored("https://a.evil.com/x");
        for (rules, is_allowed) in [
            (&[][..], true),
            (&[("*.evil.com", false)], false),
            (&[("other.com", false)], true),
            (&[("*", false)], false),
            (&[], true),
        ] {
            gate.replace(targets(rules));
            for _ in 0..2 {
                assert_eq!(gate.allows_again(&url, &verdict), is_allowed, "{rules:?}");
                assert_eq!(gate.allows(&url), is_allowed, "{rules:?}");
            }
        }
    }

    #[test]
    fn patterns_are_kept_as_urls_name_hosts() {
        for (text, kept) in [
            ("Example.COM..", "example.com"),
            ("*.Münch.de。", "*.xn--mnch-0ra.de"),
            ("[::1]", "[::1]"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
        ] {
            assert_eq!(TargetRule::parse(text, false).unwrap().pattern(), kept);
        }
        for text in ["", "*.", "*.*.com", "a*.com", "https://a.b", "a/b", "*.10.0.0.1"] {
            assert_eq!(TargetRule::parse(text, false), Err(NOT_A_PATTERN), "{text}");
        }
    }
}
