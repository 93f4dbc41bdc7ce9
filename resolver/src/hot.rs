//! Each listener thread's own table of the links it was asked for last, in front of the cache that all threads share.
//!
//! 1. A hit reads memory that no other core writes: no shared counter, no list to reorder, no reference count. The shared cache costs
//!    0.9 µs of a redirect's 8 (`bench redirect`, 2026-11-21), and more with every core that asks for the same link.
//! 2. An entry is as good as the shared cache's: it is used only while that one still [is current](Cached::is_current).
//! 3. The shared cache hears of one use in [`TOLD_EVERY`], and of one a minute at least, so that a link in use stays in it.
//! 4. Four entries share a place, and the one that was used least makes room, so that a scan of rare links leaves the popular ones.

use std::{
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard},
};

use foldhash::fast::RandomState;
use hyper::header::HeaderValue;
use jiff::Timestamp;

use crate::{
    codes::Code,
    links::Link,
    lookup::{Cached, Lookup},
};

/// Places of a thread's table.
const SETS: usize = 8_192;
/// Entries in each place.
const WAYS: usize = 4;
/// Links with longer URLs stay in the shared cache only: this bounds a table to 64 MiB in the worst case, 4 MiB in the usual one.
const URL_MAX: usize = 2_048;
/// The shared cache hears of one use in so many.
const TOLD_EVERY: u32 = 64;
/// And after so many seconds.
const TOLD_AFTER: i64 = 60;

struct Entry {
    code: Code,
    cached: Arc<Cached>,
    /// A copy of its own: a shared one's reference count is written by every core.
    location: HeaderValue,
    uses: u32,
    told_at: i64,
}

type Set = [Option<Entry>; WAYS];

/// One thread's table. The lock is never contended: nobody else has this table.
pub struct HotLinks {
    sets: Mutex<Box<[Set]>>,
    hasher: RandomState,
}

impl HotLinks {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        let sets = (0..SETS).map(|_| Set::default()).collect();
        Self { sets: Mutex::new(sets), hasher: RandomState::default() }
    }

    /// What `answer` makes of a link and its location, if this table or the shared cache has it.
    pub fn find<T>(
        &self,
        lookup: &Lookup,
        code: &Code,
        now: Timestamp,
        answer: impl FnOnce(&Arc<Link>, &HeaderValue) -> T,
    ) -> Option<T> {
        let mut sets = self.sets();
        let set = &mut sets[self.place(code)];
        let found = set.iter_mut().flatten().find(|entry| entry.code == *code && entry.cached.is_current());
        if let Some(entry) = found {
            entry.uses = entry.uses.saturating_add(1);
            let told = entry.uses.is_multiple_of(TOLD_EVERY) || now.as_second() - entry.told_at >= TOLD_AFTER;
            if told {
                entry.told_at = now.as_second();
                lookup.touch(code);
            }
            lookup.count_hit();
            return Some(answer(&entry.cached.link, &entry.location));
        }
        let cached = lookup.cached(code)?;
        let location = cached.location.as_ref()?;
        let made = answer(&cached.link, location);
        if location.len() <= URL_MAX
            && let Ok(location) = HeaderValue::from_bytes(location.as_bytes())
        {
            let told_at = now.as_second();
            admit(set, Entry { code: *code, location, uses: 1, told_at, cached: Arc::clone(&cached) });
        }
        Some(made)
    }

    fn place(&self, code: &Code) -> usize {
        let hash = self.hasher.hash_one(code);
        usize::try_from(hash % SETS as u64).expect("a remainder of a usize fits")
    }

    fn sets(&self) -> MutexGuard<'_, Box<[Set]>> {
        self.sets.lock().expect("no code panics while it holds this lock")
    }
}

impl Default for HotLinks {
    fn default() -> Self {
        Self::new()
    }
}

/// Puts an entry where there is room, or in the place of the one that was used least; the others' uses count half from then on.
fn admit(set: &mut Set, entry: Entry) {
    let worth = |slot: &Option<Entry>| {
        slot.as_ref().filter(|entry| entry.cached.is_current()).map_or(0, |entry| entry.uses)
    };
    if set.iter().all(|slot| worth(slot) > 0) {
        set.iter_mut().flatten().for_each(|entry| entry.uses /= 2);
    }
    if let Some(slot) = set.iter_mut().min_by_key(|slot| worth(slot)) {
        *slot = Some(entry);
    }
}
