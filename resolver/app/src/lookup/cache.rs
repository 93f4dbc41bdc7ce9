//! The links in memory, and counters by which whoever keeps a copy of one sees that it has left.

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

/// An entry lives this long after its last use (A5).
const IDLE: Duration = Duration::from_secs(3600);
/// Bytes an entry costs beside its texts: keys, counters and the allocator's share.
const ENTRY_BYTES: usize = 200;
/// Counters of changes; 16 KiB stay in a core's cache.
const GENERATIONS: u64 = 4_096;

/// A link in the cache, with what its answers are made of.
pub struct Cached {
    /// The link.
    pub link: Arc<Link>,
    /// When it was read, or a little before.
    pub(super) read_at: ReadAt,
    /// Whether the primary said it: a copy may not know of a change that was told long ago.
    pub(super) is_sure: bool,
    /// Where it always leads, as the header says it; none of a row that nobody checked, or whose answer depends on more than the request.
    pub location: Option<Box<[u8]>>,
    /// Whether the rules about targets let it lead there.
    pub(super) verdict: Verdict,
    /// What it takes of the cache's memory, about: an entry with many rules takes a thousand times as much as one with none.
    bytes: u32,
}

impl Cached {
    pub(super) fn new(link: &Arc<Link>, read_at: ReadAt, is_sure: bool) -> Arc<Self> {
        let is_simple = link.details.as_ref().is_none_or(|details| details.is_simple());
        let location = location(link.long_url.as_str());
        let fits_header = location.bytes().all(|byte| (b' '..0x7f).contains(&byte));
        let location = (is_simple && fits_header).then(|| Box::from(location.as_bytes()));
        let title = link.title.as_ref().map_or(0, String::len);
        let texts = link.long_url.as_str().len() + location.as_deref().map_or(0, <[u8]>::len);
        let details = link.details.as_deref().map_or(0, Details::bytes);
        let bytes = u32::try_from(ENTRY_BYTES + title + texts + details).unwrap_or(u32::MAX);
        let verdict = Verdict::default();
        Arc::new(Self { link: Arc::clone(link), read_at, is_sure, location, verdict, bytes })
    }
}

/// What a link is in the cache under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// What visitors ask for.
    Code(Code),
    /// The id, of a link whose slug could not have been minted.
    Id(LinkId),
}

impl Name {
    pub(super) fn of(mint: &Mint, id: LinkId) -> Self {
        mint.code_of(id).map_or(Self::Id(id), Self::Code)
    }
}

/// Not SipHash: it takes a quarter of a lookup, and keys are random to everybody but us.
pub(super) type LinkCache = Cache<Name, Arc<Cached>, RandomState>;

/// Counters that many codes share: each change of the cache is seen by whoever has kept a copy of an entry.
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
        &self.counters[usize::try_from(place).expect("a remainder of a small number fits")]
    }

    pub(super) fn advance_all(&self) {
        for counter in &self.counters {
            counter.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn advance(&self, name: &Name) {
        // Nobody keeps entries of their own of the others.
        if let Name::Code(code) = name {
            self.of(self.hasher.hash_one(code)).fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A cache of so many bytes; whatever leaves it advances its generation.
pub(super) fn cache(bytes: u64, generations: Arc<Generations>) -> LinkCache {
    Cache::builder()
        .max_capacity(bytes)
        .weigher(|_, cached: &Arc<Cached>| cached.bytes)
        .time_to_idle(IDLE)
        .eviction_listener(move |name, _, _| generations.advance(&name))
        .build_with_hasher(RandomState::default())
}

#[cfg(test)]
mod tests {
    use codes::KeyspaceIndex;
    use jiff::Timestamp;
    use links::{Draft, LongUrl, api_key::ApiKeyId};

    use super::*;
    use crate::freshness::Freshness;

    fn cached(number: u64) -> Arc<Cached> {
        let long_url = LongUrl::parse(&format!("https://example.com/{number}"), &[]).unwrap();
        let draft = Draft {
            long_url,
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: ApiKeyId(1),
            details: None,
        };
        let id = LinkId::new(KeyspaceIndex::new(1).unwrap(), number);
        Cached::new(&Arc::new(Link::stored(id, draft, Timestamp::UNIX_EPOCH)), Freshness::new().now(), true)
    }

    #[test]
    fn whatever_leaves_the_cache_advances_its_generation() {
        let generations = Arc::new(Generations::new());
        let cache = cache(4 * u64::from(cached(0).bytes), Arc::clone(&generations));
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
