//! The names of crawlers, by the list of crawler-user-agents.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// The names, one a line; `^` is the beginning of an agent.
const NAMES: &str = include_str!("../crawlers/names.txt");

/// The names as one automaton, and whether each stands at the beginning only.
static CRAWLERS: LazyLock<(AhoCorasick, Vec<bool>)> = LazyLock::new(|| {
    let names = NAMES.lines().map(|name| name.strip_prefix('^').unwrap_or(name));
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .build(names)
        .expect("20 kB of names are far from the limits of an automaton");
    (automaton, NAMES.lines().map(|name| name.starts_with('^')).collect())
});

pub(crate) fn is_named_in(user_agent: &[u8]) -> bool {
    let (automaton, is_first) = &*CRAWLERS;
    let mut found = automaton.find_overlapping_iter(user_agent);
    found.any(|name| name.start() == 0 || !is_first[name.pattern().as_usize()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_list_is_found() {
        for name in NAMES.lines() {
            let name = name.strip_prefix('^').unwrap_or(name);
            assert!(is_named_in(name.as_bytes()), "{name}");
        }
        assert!(NAMES.lines().count() > 1_000);
    }

    #[test]
    fn a_name_that_stands_first_is_none_elsewhere() {
        for (agent, is_named) in [
            ("Silk/44.1.54 like Chrome/44.0", true),
            ("Mozilla/5.0 (Linux) AppleWebKit/537.36 Silk/130.4.1 like Chrome/130.0", false),
            ("HTTPie/3.2.2", true),
            ("Mozilla/5.0 HTTPie/3.2.2", false),
        ] {
            assert_eq!(is_named_in(agent.as_bytes()), is_named, "{agent}");
        }
    }
}
