//! Destination policy: rules that allow or deny hosts as targets of links.
//!
//! 1. A pattern is a host, or `*.` and a domain, which matches every host below the domain but not
//!    the domain itself, as in certificates.
//! 2. The longest pattern that matches a host decides, so that a rule can have exceptions. An exact
//!    host takes precedence over any `*.` pattern.
//! 3. `*` matches every host and is shorter than any other pattern. Denying `*` makes the other
//!    rules an allowlist. Hosts that no pattern matches are allowed.
//! 4. With `--check-targets always`, the default, the rules also apply to existing links. A denied
//!    link stops redirecting as soon as a resolver has read the rule, and redirects again when the
//!    rule is removed. Redirects consult [`Gate`].

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use url::Host;

use crate::LongUrl;

/// Pattern that matches every host.
const ALL: &str = "*";
/// Maximum length of a pattern, in bytes.
const MAX_LEN: usize = 255;

/// A target rule: allows or denies the hosts of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule {
    pattern: Box<str>,
    allowed: bool,
}

/// Error of [`TargetRule::parse`]: not a pattern of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host such as example.com, *.example.com for all below it, or * for every host")]
pub struct PatternError;

impl TargetRule {
    /// Maximum length of a pattern, in bytes.
    pub const MAX_LEN: usize = MAX_LEN;

    /// Parses a pattern. Hosts are kept as URLs name them: lower case, in Punycode, without a
    /// trailing dot.
    ///
    /// # Errors
    /// Returns [`PatternError`] if the pattern names no hosts, or is longer than
    /// [`TargetRule::MAX_LEN`].
    pub fn parse(pattern: &str, allowed: bool) -> Result<Self, PatternError> {
        let pattern = pattern.trim();
        if pattern == ALL {
            return Ok(Self { pattern: ALL.into(), allowed });
        }
        // A trailing dot names the same host.
        let pattern = pattern.strip_suffix('.').unwrap_or(pattern);
        let (star, host) = pattern.strip_prefix("*.").map_or(("", pattern), |host| ("*.", host));
        let host = Host::parse(host).map_err(|_| PatternError)?;
        let is_name = matches!(&host, Host::Domain(name) if !name.contains('*') && !name.is_empty());
        let kept = format!("{star}{host}");
        if kept.len() > MAX_LEN || (!star.is_empty() && !is_name) || host.to_string().contains('*') {
            return Err(PatternError);
        }
        Ok(Self { pattern: kept.into(), allowed })
    }

    /// Returns the pattern as it is kept.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns `true` if the rule allows its hosts.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }
}

/// Set of all target rules, indexed by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    rules: HashMap<Box<str>, bool>,
}

impl Targets {
    /// Builds the set from its rules.
    #[must_use]
    pub fn new(rules: &[TargetRule]) -> Self {
        Self { rules: rules.iter().map(|rule| (rule.pattern.clone(), rule.allowed)).collect() }
    }

    /// Returns `true` if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns `true` if links may lead to this URL.
    #[must_use]
    pub fn allow_url(&self, url: &LongUrl) -> bool {
        self.rules.is_empty() || self.allow(&url.host())
    }

    /// Returns `true` if links may lead to this host. `host` is in lower case, as in a parsed URL.
    #[must_use]
    pub fn allow(&self, host: &str) -> bool {
        if self.rules.is_empty() {
            return true;
        }
        // A trailing dot names the same host.
        let host = host.strip_suffix('.').unwrap_or(host);
        if let Some(allowed) = self.rules.get(host) {
            return *allowed;
        }
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(allowed) = self.rules.get(format!("*.{parent}").as_str()) {
                return *allowed;
            }
            rest = parent;
        }
        self.rules.get(ALL).copied().unwrap_or(true)
    }
}

/// Target rules as redirects evaluate them, replaceable at run time.
///
/// The verdict is computed once for each cached link and each set of rules, so that redirecting a
/// cached link parses no URL.
#[derive(Debug, Default)]
pub struct Gate {
    targets: RwLock<Arc<Targets>>,
    /// Twice the number of changes, plus one while there are rules. A single load shows that there
    /// are none.
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
        let has_rules = u64::from(!targets.is_empty());
        let mut place = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(targets);
        let changes = self.state.load(Ordering::Relaxed) / 2 + 1;
        self.state.store(changes * 2 + has_rules, Ordering::Release);
    }

    /// Returns `true` if redirects may lead to this URL.
    #[must_use]
    pub fn allows(&self, url: &LongUrl) -> bool {
        let has_rules = self.state.load(Ordering::Acquire) % 2 == 1;
        !has_rules || self.targets.read().unwrap_or_else(PoisonError::into_inner).allow_url(url)
    }

    /// Returns `true` if redirects may lead to this URL, and caches the result in `verdict`. For
    /// URLs that are checked often.
    #[must_use]
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
            ("good.evil.com.", true),
            ("bad.evil.com", false),
            ("a.b.evil.com", false),
            ("evil.com", true),
            ("x.very.good.evil.com", false),
            ("notevil.com", true),
        ] {
            assert_eq!(targets(&rules).allow(host), allowed, "{host}");
        }
        rules.push(("*", false));
        let listed = targets(&rules);
        assert!(listed.allow("good.evil.com") && !listed.allow("notevil.com") && !listed.allow("evil.com"));
        let denied = targets(&[("*.evil.com", false), ("10.0.0.1", false)]);
        for (host, allowed) in
            [("evil.com", true), ("a.evil.com", false), ("10.0.0.1", false), ("other.org", true)]
        {
            assert_eq!(denied.allow(host), allowed, "{host}");
        }
        assert!(Targets::default().allow("anything"));
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
        for (text, kept) in
            [("Example.COM", "example.com"), ("*.Münch.de", "*.xn--mnch-0ra.de"), ("[::1]", "[::1]")]
        {
            assert_eq!(TargetRule::parse(text, false).unwrap().pattern(), kept);
        }
        for text in ["", "*.", "*.*.com", "a*.com", "https://a.b", "a/b", "*.10.0.0.1"] {
            assert_eq!(TargetRule::parse(text, false), Err(PatternError), "{text}");
        }
    }
}
