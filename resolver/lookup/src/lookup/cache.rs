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
        let location = || location(link.long_url.as_str()).into_bytes().into_boxed_slice();
        let location = is_simple.then(location);
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

/// The cache of links. To insert a link or to invalidate its name advances its generation.
///
/// An eviction for lack of room or of use advances none: a thread's copy of the entry is as good as
/// before, because a later change invalidates the name, cached or not. Rejected: a listener to
/// moka's evictions. With one, each insert also creates a lock for its key in another table.
#[derive(Clone)]
pub(super) struct LinkCache {
    /// Its hasher is not SipHash, which takes a quarter of a lookup; clients cannot predict the
    /// keys anyway.
    links: Cache<Name, Arc<Cached>, RandomState>,
    pub(super) generations: Arc<Generations>,
}

impl LinkCache {
    /// Builds a cache of this many bytes, with room for `at_once` links from the start.
    pub(super) fn new(bytes: u64, at_once: usize) -> Self {
        let links = Cache::builder()
            .max_capacity(bytes)
            .initial_capacity(at_once)
            .weigher(|_: &Name, cached: &Arc<Cached>| cached.bytes)
            .time_to_idle(IDLE)
            .build_with_hasher(RandomState::default());
        Self { links, generations: Arc::new(Generations::new()) }
    }

    pub(super) fn get(&self, name: &Name) -> Option<Arc<Cached>> {
        self.links.get(name)
    }

    pub(super) fn contains_key(&self, name: &Name) -> bool {
        self.links.contains_key(name)
    }

    pub(super) fn insert(&self, name: Name, cached: Arc<Cached>) {
        self.links.insert(name, cached);
        self.generations.advance(&name);
    }

    pub(super) fn invalidate(&self, name: &Name) {
        self.links.invalidate(name);
        self.generations.advance(name);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Arc<Cached>> {
        self.links.iter().map(|(_, cached)| cached)
    }
}

/// Generation counters, each shared by many codes. A counter advances when a link is inserted under
/// one of its codes or that is invalidated, so that threads notice that their copies are stale.
pub(super) struct Generations {
    counters: Box<[AtomicU32]>,
    pub(super) hasher: RandomState,
}

impl Generations {
    fn new() -> Self {
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

#[cfg(test)]
mod tests {
    use supply::safety_rule::SafetyRules;

    use super::*;
    use crate::{freshness::Freshness, lookup::tests};

    fn cached(number: i64) -> Arc<Cached> {
        Cached::new(&tests::link(number, 0), Freshness::new(SafetyRules::default()).now())
    }

    #[test]
    fn a_code_that_gets_another_link_or_is_invalidated_advances_its_generation() {
        let (cache, code) = (LinkCache::new(1 << 20, 0), Code::parse("abc123").unwrap());
        let (name, generations) = (Name::Code(code), &cache.generations);
        let now = || generations.of(generations.hasher.hash_one(code)).load(Ordering::Acquire);
        cache.insert(name, cached(0));
        let before = now();
        cache.insert(name, cached(1));
        assert_eq!(now(), before + 1, "another link in its place");
        cache.invalidate(&name);
        assert_eq!(now(), before + 2, "taken out");
        assert!(!cache.contains_key(&name));
        cache.invalidate(&name);
        assert_eq!(now(), before + 3, "a thread may have a copy of what was evicted");
    }
}
