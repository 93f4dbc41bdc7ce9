//! Hosts that links may lead to, or may not.
//!
//! 1. A pattern is a host, or `*.` and a domain, which means every host below it but not the domain itself, as in certificates.
//! 2. The longest pattern that fits a host decides, so that an exception can be made of a rule; a host by itself is longer than any `*.`.
//! 3. `*` fits every host, and is shorter than any other pattern: not to be allowed it makes of the others a list of what is allowed. Hosts that
//!    no pattern fits are allowed.
//! 4. With `--check-targets always`, the default, the rules hold for links that are there too: what
//!    a rule denies leads nowhere from the moment a resolver has read it, and leads on again when
//!    the rule is taken away. [`Gate`] is what redirects ask.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use url::Host;

use crate::LongUrl;

/// Every host.
const ALL: &str = "*";
/// The longest pattern, in bytes.
const MAX_LEN: usize = 255;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule {
    pattern: Box<str>,
    allowed: bool,
}

/// A pattern that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host such as example.com, *.example.com for all below it, or * for every host")]
pub struct PatternError;

impl TargetRule {
    /// The longest pattern, in bytes.
    pub const MAX_LEN: usize = MAX_LEN;

    /// Reads a pattern.
    ///
    /// # Errors
    /// When it names no hosts.
    pub fn parse(pattern: &str, allowed: bool) -> Result<Self, PatternError> {
        let pattern = pattern.trim();
        if pattern == ALL {
            return Ok(Self { pattern: ALL.into(), allowed });
        }
        // A dot at the end names the same host.
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

    /// The pattern as it is kept.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether links may lead there.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }
}

/// All rules, made to be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    rules: HashMap<Box<str>, bool>,
}

impl Targets {
    /// The rules together.
    #[must_use]
    pub fn new(rules: &[TargetRule]) -> Self {
        Self { rules: rules.iter().map(|rule| (rule.pattern.clone(), rule.allowed)).collect() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether links may lead to this URL.
    #[must_use]
    pub fn allow_url(&self, url: &LongUrl) -> bool {
        self.rules.is_empty() || self.allow(&url.host())
    }

    /// Whether links may lead to this host: in small letters, as a parsed URL has it.
    #[must_use]
    pub fn allow(&self, host: &str) -> bool {
        if self.rules.is_empty() {
            return true;
        }
        // A dot at the end names the same host.
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

/// The rules as redirects ask them: a verdict is reached once for each cached link and each set of
/// rules, so that a redirect of a link in a cache parses no URL.
#[derive(Debug, Default)]
pub struct Gate {
    targets: RwLock<Arc<Targets>>,
    /// Twice the number of changes, and one more while there are rules: a gate without any is seen
    /// by one load.
    state: AtomicU64,
}

/// The last verdict about one URL, and under which rules it was reached.
#[derive(Debug, Default)]
pub struct Verdict(AtomicU64);

impl Gate {
    /// Asks these rules from now on. Whoever keeps what was allowed before has to be told
    /// afterwards.
    pub fn replace(&self, targets: Targets) {
        let has_rules = u64::from(!targets.is_empty());
        let mut place = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(targets);
        let changes = self.state.load(Ordering::Relaxed) / 2 + 1;
        self.state.store(changes * 2 + has_rules, Ordering::Release);
    }

    /// Whether redirects may lead to this URL.
    #[must_use]
    pub fn allows(&self, url: &LongUrl) -> bool {
        let has_rules = self.state.load(Ordering::Acquire) % 2 == 1;
        !has_rules || self.targets.read().unwrap_or_else(PoisonError::into_inner).allow_url(url)
    }

    /// The same, of a URL that is asked about often.
    #[must_use]
    pub fn allows_again(&self, url: &LongUrl, verdict: &Verdict) -> bool {
        // Read first: a verdict of newer rules under an older number is only reached once more.
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
