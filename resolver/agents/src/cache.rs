//! Cache of parsed user agents.
//!
//! 1. At most the given number of bytes is held. There are two generations: a new agent enters the
//!    young one, and an agent of the old one that is asked for returns to it. Once the young one
//!    has half of the bytes, it becomes the old one, and the former old one is dropped.
//! 2. Keys are 64-bit hashes with a random key. So no client can choose a text that is taken for
//!    another one, and by accident that happens once in 10^9 caches of 100,000 agents.
//! 3. A text beyond the budget is not remembered, so that it is parsed when it comes again.
//!
//! Rejected: `moka`, which reads clocks and has locks that one thread does not need.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    mem,
    sync::Arc,
    time::Duration,
};

use crate::{Agent, Budget, Parser, bots::is_bot, head};

/// The bytes of an entry beside its names: key, pointer and struct, and about half as much again
/// for the free places of the table and the allocator.
const ENTRY_LEN: usize = (size_of::<(u64, Arc<Agent>)>() + size_of::<Agent>()) * 3 / 2;

/// A parser with a cache of what it parsed.
#[derive(Debug)]
pub struct Cache {
    parser: Parser,
    hasher: RandomState,
    young: Generation,
    old: Generation,
    generation_max: usize,
    /// The agent beyond the budget, for a person and for a bot.
    others: [Arc<Agent>; 2],
    beyond: u64,
}

#[derive(Debug, Default)]
struct Generation {
    agents: HashMap<u64, Arc<Agent>>,
    bytes: usize,
}

impl Generation {
    fn insert(&mut self, key: u64, agent: Arc<Agent>) {
        self.bytes += ENTRY_LEN + agent.names_len();
        self.agents.insert(key, agent);
    }
}

impl Cache {
    /// The bytes that a resolver affords, enough for about 30,000 agents.
    pub const BYTES_MAX: usize = 8 << 20;

    /// Creates an empty cache that holds at most about `bytes_max` bytes.
    #[must_use]
    pub fn new(parser: Parser, bytes_max: usize) -> Self {
        Self {
            parser,
            hasher: RandomState::new(),
            young: Generation::default(),
            old: Generation::default(),
            generation_max: bytes_max / 2,
            others: [false, true].map(|bot| Arc::new(Agent::not_parsed(bot))),
            beyond: 0,
        }
    }

    /// Returns what a user agent says: from the cache, or parsed if the budget has a parse left.
    /// Otherwise returns [`Agent::other`].
    pub fn agent(&mut self, user_agent: &[u8], budget: &mut Budget, now: Duration) -> Arc<Agent> {
        let key = self.hasher.hash_one(head(user_agent));
        if let Some(agent) = self.young.agents.get(&key) {
            return Arc::clone(agent);
        }
        let agent = match self.old.agents.get(&key) {
            Some(agent) => Arc::clone(agent),
            None if budget.take(now) => Arc::new(self.parser.parse(user_agent)),
            None => {
                self.beyond += 1;
                return Arc::clone(&self.others[usize::from(is_bot(user_agent))]);
            }
        };
        self.remember(key, Arc::clone(&agent));
        agent
    }

    /// Returns how many calls of [`Cache::agent`] were beyond the budget, since the start.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    fn remember(&mut self, key: u64, agent: Arc<Agent>) {
        self.young.insert(key, agent);
        if self.young.bytes >= self.generation_max {
            self.old = mem::take(&mut self.young);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const NOW: Duration = Duration::from_secs(9);

    fn firefox(version: usize) -> Vec<u8> {
        format!("Mozilla/5.0 (X11; Linux x86_64; rv:{version}.0) Gecko/20100101 Firefox/{version}.0")
            .into_bytes()
    }

    fn budget(per_second: u32) -> Budget {
        Budget::new(NonZeroU32::new(per_second).unwrap())
    }

    #[test]
    fn each_text_is_parsed_once() {
        let mut cache = Cache::new(Parser::new(), Cache::BYTES_MAX);
        let mut budget = budget(2);
        for version in [131, 132, 131, 132] {
            let agent = cache.agent(&firefox(version), &mut budget, NOW);
            assert_eq!(agent.browser_version.as_str(), version.to_string());
        }
        assert_eq!(cache.beyond(), 0);
    }

    #[test]
    fn beyond_the_budget_agents_are_others_until_it_has_parses_again() {
        let mut cache = Cache::new(Parser::new(), Cache::BYTES_MAX);
        let mut budget = budget(1);
        assert_eq!(cache.agent(&firefox(1), &mut budget, NOW).browser.as_str(), "Firefox");
        let other = cache.agent(&firefox(2), &mut budget, NOW);
        assert_eq!(*other, Agent::other(&firefox(2)));
        assert_eq!((other.os.as_str(), other.bot), (crate::Name::OTHER, false));
        assert!(cache.agent(b"Googlebot/2.1", &mut budget, NOW).bot);
        assert_eq!(cache.beyond(), 2);
        let later = NOW + Duration::from_secs(1);
        assert_eq!(cache.agent(&firefox(2), &mut budget, later).browser.as_str(), "Firefox");
    }

    #[test]
    fn memory_is_bounded_and_agents_in_use_stay() {
        let max = 64 << 10;
        let mut cache = Cache::new(Parser::new(), max);
        let mut budget = budget(1_000_000);
        let used = cache.agent(&firefox(0), &mut budget, NOW);
        for version in 1..2_000 {
            let _ = cache.agent(&firefox(version), &mut budget, NOW);
            assert!(cache.young.bytes + cache.old.bytes <= max + 2 * (ENTRY_LEN + 6 * crate::Name::MAX));
            assert!(Arc::ptr_eq(&used, &cache.agent(&firefox(0), &mut budget, NOW)), "{version}");
        }
        assert!(cache.old.agents.len() > 50, "a generation holds many agents");
        let first = cache.hasher.hash_one(firefox(1).as_slice());
        assert!(!cache.young.agents.contains_key(&first) && !cache.old.agents.contains_key(&first));
    }
}
