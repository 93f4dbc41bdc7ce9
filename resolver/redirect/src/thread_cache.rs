//! Each listener thread's own table of the links it was asked for last, in front of the cache that all threads share.
//!
//! 1. A hit reads memory that no other core writes, and little of it: no shared counter, no list to reorder, no reference count. The
//!    shared cache costs 0.9 µs of a redirect's 8 (`bench redirect`, 2026-11-21), and more with every core that asks for the same link.
//! 2. An entry is as good as the shared cache's: whatever leaves that, for whatever reason, changes the [generation](Lookup::generation)
//!    that the entry was made under, and then the shared cache is asked again.
//! 3. The shared cache hears of one use in `REPORTED_EVERY`, and of one a minute at least, so that a link in use stays in it.
//! 4. Four entries share a place, and the one that was used least makes room, so that a scan of rare links leaves the popular ones.
//! 5. With many links in use each line of memory is one that the core has to wait for: a hit takes one of tags, one for the entry and
//!    those of the URL.

use std::sync::{Mutex, MutexGuard};

use app::lookup::Lookup;
use codes::{Code, LinkId};
use jiff::Timestamp;

/// Places of a thread's table.
const SETS: usize = 8_192;
/// Entries in each place.
const WAYS: usize = 4;
/// Links with longer URLs stay in the shared cache only: this bounds a table to 66 MiB in the worst case, 4 MiB in the usual one.
const URL_MAX: usize = 2_048;
/// The shared cache hears of one use in so many.
const REPORTED_EVERY: u32 = 64;
/// And after so many seconds.
const REPORTED_AFTER: i64 = 60;

/// Where a link leads, as far as a redirect needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedTarget {
    /// The link.
    pub link: LinkId,
    /// Where it leads, as the header says it. Each thread has a copy of its own, and each answer too: the count of a shared one's
    /// references is one more line to wait for.
    pub location: Box<[u8]>,
    /// Whether the visitor's query goes along, which makes another location.
    pub forward_query: bool,
}

/// One line of a core's cache.
#[repr(align(64))]
struct Entry {
    code: Code,
    generation: u32,
    uses: u32,
    reported_at: i64,
    target: CachedTarget,
}

type Set = [Option<Entry>; WAYS];

struct Table {
    /// A part of the hash of what stands in each place, to know which entry to look at.
    tags: Box<[[u32; WAYS]]>,
    sets: Box<[Set]>,
    /// Hits since they were last told.
    hits: u64,
}

/// One thread's table. The lock is never contended: nobody else has this table.
pub struct ThreadCache {
    table: Mutex<Table>,
}

impl ThreadCache {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        let sets = (0..SETS).map(|_| Set::default()).collect();
        let tags = vec![[0; WAYS]; SETS].into_boxed_slice();
        Self { table: Mutex::new(Table { tags, sets, hits: 0 }) }
    }

    /// What `respond` makes of a link's target, if this table or the shared cache has it. It is a hit only if that is something.
    pub fn find<T>(
        &self,
        lookup: &Lookup,
        code: &Code,
        now: Timestamp,
        respond: impl FnOnce(&CachedTarget) -> Option<T>,
    ) -> Option<T> {
        let hash = lookup.hash(code);
        let place = usize::try_from(hash % SETS as u64).expect("a remainder of a usize fits");
        let tag = u32::try_from(hash >> 32).expect("half of the bits are left");
        let mut table = self.table();
        let Table { tags, sets, hits } = &mut *table;
        let (tags, set) = (&mut tags[place], &mut sets[place]);
        // Read before the shared cache is: what leaves it afterwards changes it again.
        let generation = lookup.generation(hash);
        if let Some(entry) = find_in(set, *tags, tag, code)
            && entry.generation == generation
        {
            entry.uses = entry.uses.saturating_add(1);
            if entry.uses.is_multiple_of(REPORTED_EVERY)
                || now.as_second() - entry.reported_at >= REPORTED_AFTER
            {
                entry.reported_at = now.as_second();
                lookup.touch(code);
            }
            return respond(&entry.target).inspect(|_| *hits += 1);
        }
        let cached = lookup.cached(code).filter(|cached| lookup.allows_cached(cached))?;
        let location = cached.location.clone()?;
        let target =
            CachedTarget { link: cached.link.id, location, forward_query: cached.link.forward_query };
        let made = respond(&target).inspect(|_| *hits += 1);
        // While changes may be missed only the shared cache knows how long a link is believed.
        if target.location.len() <= URL_MAX && lookup.is_settled(&cached) {
            let entry = Entry { code: *code, generation, uses: 1, reported_at: now.as_second(), target };
            tags[admit(set, entry)] = tag;
        }
        made
    }

    /// Tells how many hits there were since the last time: each on its own would write what other cores write too.
    pub fn report_hits(&self, lookup: &Lookup) {
        lookup.count_hits(std::mem::take(&mut self.table().hits));
    }

    #[inline]
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no code panics while it holds this lock")
    }
}

impl Default for ThreadCache {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn find_in<'a>(set: &'a mut Set, tags: [u32; WAYS], tag: u32, code: &Code) -> Option<&'a mut Entry> {
    let may_be = set.iter_mut().zip(tags).filter(|(_, other)| *other == tag);
    may_be.filter_map(|(entry, _)| entry.as_mut()).find(|entry| entry.code == *code)
}

/// Puts an entry in the place of its former self, or where there is room, or in the place of the one that was used least; then the
/// others' uses count half. Says in which place.
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
