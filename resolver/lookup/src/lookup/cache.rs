//! The cache of links, with generation counters. A per-thread copy of an entry is stale once its
//! generation differs.

use std::{
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use codes::{Code, LinkId, Mint};
use foldhash::quality::RandomState;
use links::{Details, Link, location, targets::Verdict};
use moka::sync::Cache;

use crate::freshness::ReadAt;

/// How long an entry lives after its last use (A5).
const IDLE: Duration = Duration::from_secs(3600);
/// Bytes that an entry takes beside its texts: the link, the cache's keys and counters, and the
/// allocator's share. A process with 200,000 of them took 490 for each, texts of 52 included
/// (2026-11-29).
pub(super) const ENTRY_BYTES: usize = 440;
/// Number of generation counters; their 16 KiB stay in a core's cache.
const GENERATIONS: u64 = 4_096;

/// A cached link, with the values that its answers are made of.
pub(super) struct Cached {
    pub(super) link: Arc<Link>,
    /// When the link was read, or a little earlier.
    pub(super) read_at: ReadAt,
    /// The `Location` header that the link always has. `None` if the answer depends on more than
    /// the request.
    pub(super) location: Option<Box<[u8]>>,
    /// The cached verdict of the target rules on the long URL.
    pub(super) verdict: Verdict,
    /// Approximate memory of the entry, in bytes. An entry with many rules takes a thousand times
    /// as much as one without.
    pub(super) bytes: u32,
}

impl Cached {
    pub(super) fn new(link: &Arc<Link>, read_at: ReadAt) -> Arc<Self> {
        let is_simple = link.details.as_ref().is_none_or(|details| details.is_simple());
        let location = is_simple.then(|| Box::from(location(link.long_url.as_str()).as_bytes()));
        let title = link.title.as_ref().map_or(0, String::len);
        let texts = link.long_url.as_str().len() + location.as_deref().map_or(0, <[u8]>::len);
        let details = link.details.as_deref().map_or(0, Details::bytes);
        let bytes = u32::try_from(ENTRY_BYTES + title + texts + details).unwrap_or(u32::MAX);
        let verdict = Verdict::default();
        Arc::new(Self { link: Arc::clone(link), read_at, location, verdict, bytes })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// The code, of a link whose number has one.
    Code(Code),
    /// The id, of a link whose slug is not mintable.
    Id(LinkId),
}

impl Name {
    pub(super) fn of(mint: &Mint, id: LinkId) -> Self {
        mint.code_of(id).map_or(Self::Id(id), Self::Code)
    }
}

/// The cache of links. Its hasher is not SipHash, which takes a quarter of a lookup; clients cannot
/// predict the keys anyway.
pub(super) type LinkCache = Cache<Name, Arc<Cached>, RandomState>;

/// Generation counters, each shared by many codes. A counter advances when one of its codes leaves
/// the cache, so that threads notice that their copies are stale.
pub(super) struct Generations {
    counters: Box<[AtomicU32]>,
    pub(super) hasher: RandomState,
}

impl Generations {
    pub(super) fn new() -> Self {
        let counters = (0..GENERATIONS).map(|_| AtomicU32::new(0)).collect();
        Self { counters, hasher: RandomState::default() }
    }

    pub(super) fn of(&self, hash: u64) -> &AtomicU32 {
        let place = (hash >> 32) % GENERATIONS;
        &self.counters[usize::try_from(place).expect("the place is below GENERATIONS")]
    }

    pub(super) fn advance_all(&self) {
        for counter in &self.counters {
            counter.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn advance(&self, name: &Name) {
        // Threads keep copies of entries under codes only.
        if let Name::Code(code) = name {
            self.of(self.hasher.hash_one(code)).fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Builds a cache of this many bytes. Every entry that leaves it advances its generation.
pub(super) fn cache(bytes: u64, at_once: usize, generations: Arc<Generations>) -> LinkCache {
    Cache::builder()
        .max_capacity(bytes)
        .initial_capacity(at_once)
        .weigher(|_, cached: &Arc<Cached>| cached.bytes)
        .time_to_idle(IDLE)
        .eviction_listener(move |name, _, _| generations.advance(&name))
        .build_with_hasher(RandomState::default())
}

#[cfg(test)]
mod tests {
    use supply::safety_rule::SafetyRules;

    use super::*;
    use crate::{freshness::Freshness, lookup::tests};

    fn cached(number: i64) -> Arc<Cached> {
        Cached::new(&tests::link(number, 0), Freshness::new(SafetyRules::default()).now())
    }

    #[test]
    fn whatever_leaves_the_cache_advances_its_generation() {
        let generations = Arc::new(Generations::new());
        let cache = cache(4 * u64::from(cached(0).bytes), 0, Arc::clone(&generations));
        let code = Code::parse("abc123").unwrap();
        let name = Name::Code(code);
        let now = || generations.of(generations.hasher.hash_one(code)).load(Ordering::Acquire);
        cache.insert(name, cached(0));
        cache.run_pending_tasks();
        assert_eq!(now(), 0, "what comes in changes nothing");
        cache.insert(name, cached(1));
        assert_eq!(now(), 1, "another link in its place");
        cache.invalidate(&name);
        assert_eq!(now(), 2, "taken out");
        cache.insert(name, cached(2));
        cache.run_pending_tasks();
        let others = ["d", "e", "f", "g", "h"].map(|code| Name::Code(Code::parse(code).unwrap()));
        for _ in 0..20 {
            for other in others {
                cache.get(&other);
                cache.insert(other, cached(3));
                cache.run_pending_tasks();
            }
        }
        assert!(!cache.contains_key(&name));
        assert!(now() > 2, "pushed out by others");
    }
}
