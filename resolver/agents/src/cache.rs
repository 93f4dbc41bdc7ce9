//! Cache of parsed user agents.

use std::sync::Arc;

use crate::{Agent, head, parser::Parser};

/// The bytes of an entry beside its texts: pointers and struct, and the bookkeeping of the cache
/// and the allocator.
const ENTRY_LEN: usize = size_of::<(Vec<u8>, Arc<Agent>)>() + size_of::<Agent>() + 256;

/// A parser with a bounded cache of what it parsed. Agents in use stay in it, and a flood of new
/// ones costs a parse each, on the thread of low priority that stores visits.
pub struct Cache {
    parser: Parser,
    agents: moka::sync::Cache<Vec<u8>, Arc<Agent>>,
}

impl Cache {
    /// The bytes that a resolver affords, enough for about 8,000 agents.
    pub const BYTES_MAX: u64 = 4 << 20;

    /// Builds the parser, and creates an empty cache that holds at most about `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        let weigh = |text: &Vec<u8>, agent: &Arc<Agent>| {
            let names = agent.browser.len() + agent.os.len();
            u32::try_from(ENTRY_LEN + text.len() + names).unwrap_or(u32::MAX)
        };
        Self {
            parser: Parser::new(),
            agents: moka::sync::Cache::builder().max_capacity(bytes_max).weigher(weigh).build(),
        }
    }

    /// Returns what a user agent says: from the cache, or parsed.
    pub fn agent(&self, user_agent: &[u8]) -> Arc<Agent> {
        let text = head(user_agent);
        self.agents.get_with_by_ref(text, || Arc::new(self.parser.parse(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_agents_in_use_stay() {
        let max = 64 << 10;
        let cache = Cache::new(max);
        let firefox = |version: usize| {
            let text = format!("Mozilla/5.0 (X11; Linux; rv:{version}.0) Gecko/20100101 Firefox/{version}.0");
            cache.agent(text.as_bytes())
        };
        let used = firefox(0);
        for version in 1..2_000 {
            assert!(!Arc::ptr_eq(&used, &firefox(version)), "{version}");
            assert!(Arc::ptr_eq(&used, &firefox(0)), "{version}");
        }
        cache.agents.run_pending_tasks();
        assert!(cache.agents.weighted_size() <= max && cache.agents.entry_count() > 50);
    }
}
