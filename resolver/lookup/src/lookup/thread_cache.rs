//! Each listener thread's own cache of recently requested links, in front of the cache that all
//! threads share.
//!
//! 1. A hit reads memory that no other core writes, and little of it: no shared counter, no list to
//!    reorder, no reference count. The shared cache costs 0.9 µs of a redirect's 8 (`bench
//!    redirect`, 2026-11-21), and more with every core that asks for the same link.
//! 2. An entry is as current as the shared cache. When a link is inserted there or invalidated, the
//!    generation of its code changes. The thread's entry is then stale, and the shared cache is
//!    asked again. A link that the shared cache evicts for lack of room may stay here: a change of
//!    it invalidates its code, cached or not.
//! 3. One use in `REPORTED_EVERY` is reported to the shared cache, and at least one a minute, so
//!    that a link in use stays there.
//! 4. Four entries form a set, and the least used of them is evicted, so that a scan of rare links
//!    leaves the popular ones.
//! 5. The table is made for the first link, so that an idle process stays small.
//! 6. With many links in use, the core waits for each cache line that it reads. A hit reads one
//!    line of tags, one for the entry, and those of the URL.

use std::{
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, atomic::Ordering},
};

use codes::{Code, LinkId};
use jiff::Timestamp;

use super::{Lookup, cache::Name};

const SETS: usize = 8_192;
const WAYS: usize = 4;
/// The longest location that is copied, in bytes; links with longer ones stay in the shared cache
/// only. This bounds a table to 66 MiB in the worst case; the usual size is 4 MiB.
const URL_MAX: usize = 2_048;
/// One use in this many is reported to the shared cache.
const REPORTED_EVERY: u32 = 64;
/// The number of seconds after which a use is reported in any case.
const REPORTED_AFTER: i64 = 60;

/// The part of a cached link that a redirect needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedTarget {
    /// The id of the link.
    pub link: LinkId,
    /// The value of the `location` header. Each thread has its own copy, and so has each response:
    /// a shared one's reference count would be one more cache line to wait for.
    pub location: Box<[u8]>,
    /// Whether the visitor's query is forwarded, which changes the location.
    pub forward_query: bool,
}

/// An entry of the table; it fills one cache line.
#[repr(align(64))]
struct Entry {
    code: Code,
    generation: u32,
    uses: u32,
    reported_at: i64,
    target: CachedTarget,
}

type Set = [Option<Entry>; WAYS];

#[derive(Default)]
struct Table {
    /// A part of each entry's hash, which tells which entries of a set to compare.
    tags: Box<[[u32; WAYS]]>,
    sets: Box<[Set]>,
    /// The number of hits since the last report.
    hits: u64,
}

/// One thread's cache of links. The lock is never contended, because no other thread uses the
/// table.
#[derive(Default)]
pub struct ThreadCache {
    table: Mutex<Table>,
}

impl ThreadCache {
    /// Calls `respond` with the target of a link if this table or the shared cache has it, and
    /// returns the result. Only a result of `Some` counts as a hit.
    pub fn find<T>(
        &self,
        lookup: &Lookup,
        code: &Code,
        now: Timestamp,
        respond: impl FnOnce(&CachedTarget) -> Option<T>,
    ) -> Option<T> {
        let generations = &lookup.cache.generations;
        // Clients cannot predict this hash, because its key is random.
        let hash = generations.hasher.hash_one(code);
        let place = usize::try_from(hash % SETS as u64).expect("the remainder is less than `SETS`, a usize");
        let tag = u32::try_from(hash >> 32).expect("a shift by 32 bits leaves 32 bits");
        let mut table = self.table();
        let Table { tags, sets, hits } = &mut *table;
        // The generation is read before the shared cache: an invalidation in between changes it
        // again, so the copy is stale at once.
        let generation = generations.of(hash).load(Ordering::Acquire);
        if let (Some(tags), Some(set)) = (tags.get(place), sets.get_mut(place))
            && let Some(entry) = find_in(set, *tags, tag, code)
            && entry.generation == generation
        {
            entry.uses = entry.uses.saturating_add(1);
            if entry.uses.is_multiple_of(REPORTED_EVERY)
                || now.as_second() - entry.reported_at >= REPORTED_AFTER
            {
                entry.reported_at = now.as_second();
                lookup.cache.get(&Name::Code(*code));
            }
            return respond(&entry.target).inspect(|_| *hits += 1);
        }
        let cached = lookup.cache.get(&Name::Code(*code)).filter(|cached| {
            lookup.invalidation.is_fresh(cached.read_at)
                && !lookup.is_cut_off()
                && lookup.gate.allows_again(&cached.link.long_url, &cached.verdict)
        })?;
        let location = cached.location.clone()?;
        let target =
            CachedTarget { link: cached.link.id, location, forward_query: cached.link.forward_query };
        let made = respond(&target).inspect(|_| *hits += 1);
        // While change notifications may be missed, only the shared cache knows how long an entry
        // may be served.
        if target.location.len() <= URL_MAX && lookup.invalidation.freshness.is_settled(cached.read_at) {
            let entry = Entry { code: *code, generation, uses: 1, reported_at: now.as_second(), target };
            if sets.is_empty() {
                *sets = (0..SETS).map(|_| Set::default()).collect();
                *tags = vec![[0; WAYS]; SETS].into_boxed_slice();
            }
            tags[place][admit(&mut sets[place], entry)] = tag;
        }
        made
    }

    /// Reports the number of hits since the last call. Reporting each hit would write memory that
    /// other cores write too.
    pub fn report_hits(&self, lookup: &Lookup) {
        lookup.count_hits(std::mem::take(&mut self.table().hits));
    }

    #[inline]
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no code panics while it holds this lock")
    }
}

#[inline]
fn find_in<'a>(set: &'a mut Set, tags: [u32; WAYS], tag: u32, code: &Code) -> Option<&'a mut Entry> {
    let may_be = set.iter_mut().zip(tags).filter(|(_, other)| *other == tag);
    may_be.filter_map(|(entry, _)| entry.as_mut()).find(|entry| entry.code == *code)
}

/// Stores an entry and returns its way in the set. It replaces an entry of the same code, else
/// fills a free slot, else evicts the least used entry; an eviction halves the use counts of the
/// set.
fn admit(set: &mut Set, entry: Entry) -> usize {
    let worth = |slot: &Option<Entry>| {
        slot.as_ref().filter(|other| other.code != entry.code).map_or(0, |other| other.uses.saturating_add(1))
    };
    if set.iter().all(|slot| worth(slot) > 0) {
        set.iter_mut().flatten().for_each(|entry| entry.uses /= 2);
    }
    let way = (0..WAYS).min_by_key(|way| worth(&set[*way])).unwrap_or(0);
    set[way] = Some(entry);
    way
}

#[cfg(test)]
mod tests {
    use codes::KeyspaceIndex;

    use super::*;

    fn entry(code: &str, uses: u32) -> Entry {
        let link = LinkId::new(KeyspaceIndex::new(1).unwrap(), 7);
        let target = CachedTarget { link, location: b"https://a.b/"[..].into(), forward_query: false };
        Entry { code: Code::parse(code).unwrap(), generation: 0, uses, reported_at: 0, target }
    }

    fn codes(set: &Set) -> Vec<&str> {
        set.iter().flatten().map(|entry| entry.code.as_str()).collect()
    }

    #[test]
    fn an_entry_is_one_line_of_memory() {
        assert_eq!(size_of::<Option<Entry>>(), 64);
    }

    #[test]
    fn the_least_used_makes_room_and_popular_entries_outlive_a_scan() {
        let mut set = Set::default();
        for (code, uses) in [("a", 900), ("b", 3), ("c", 800), ("d", 700)] {
            admit(&mut set, entry(code, uses));
        }
        admit(&mut set, entry("e", 1));
        assert_eq!(codes(&set), ["a", "e", "c", "d"], "b was used least");
        for rare in ["f", "g", "h", "i"] {
            admit(&mut set, entry(rare, 1));
        }
        assert_eq!(codes(&set), ["a", "i", "c", "d"]);
        admit(&mut set, entry("c", 1));
        assert_eq!(codes(&set), ["a", "i", "c", "d"], "an entry takes its own place again");
    }
}
