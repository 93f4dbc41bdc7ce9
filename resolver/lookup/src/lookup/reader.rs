//! The task that reads links on cache misses. One read is in flight; the misses that arrive
//! meanwhile wait in a bounded queue and form the next one.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, RwLock, RwLockWriteGuard, atomic::Ordering},
};

use codes::{LinkId, Mint};
use links::Link;
use store::{Links, READ_MAX, Reading, Source, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::{
    Found, LookupError,
    cache::{Cached, LinkCache, Name},
    invalidation::InvalidationState,
};
use supply::safety_rule::SafetyRule;

use crate::{freshness::ReadAt, metrics::Metrics};

/// The caller of a lookup, and the key under which it wants the link cached.
pub(super) struct Waiter {
    /// The cache key of the link; `None` if the caller bypasses the cache.
    pub(super) name: Option<Name>,
    pub(super) found: oneshot::Sender<Found>,
}

/// The queue of misses.
pub(super) type Misses = mpsc::Receiver<(LinkId, Waiter)>;
type Waiting = HashMap<LinkId, Vec<Waiter>>;

/// A link, as a read has shown it.
#[derive(Clone)]
struct Row {
    /// The link; `None` if no row was shown that may be used.
    link: Option<Arc<Link>>,
    /// The instant that this is at least as recent as.
    as_of: ReadAt,
    /// Whether another server than the primary has shown it.
    is_copied: bool,
    /// Whether the link is absent if there is no row.
    complete: bool,
}

/// Links that were read before anybody asked for them.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) links: u64,
    /// The memory of their entries in the cache.
    pub(super) bytes: u64,
    /// Those of them that have slugs of their own.
    pub(super) named: Vec<Arc<Link>>,
}

/// Which link answers a lookup: that of the row, or the one in the cache.
enum Present {
    Row,
    /// The cached one, which is newer.
    Cached(Arc<Link>),
    /// Only the primary knows. The cached link has a later version than the row although it was
    /// read earlier: a fail-over may have lost that version.
    Unknown,
}

pub(super) struct Reader {
    pub(super) links: Arc<dyn Links>,
    pub(super) cache: LinkCache,
    pub(super) invalidation: Arc<InvalidationState>,
    pub(super) metrics: Arc<Metrics>,
    /// The names that misses have kept since a load began; `None` if none is under way. Loads share
    /// the lock, because each has links of its own.
    pub(super) kept: RwLock<Option<HashSet<Name>>>,
}

impl Reader {
    pub(super) async fn run(&self, lane: usize, mut queue: Misses) {
        let mut next = Waiting::new();
        loop {
            if next.is_empty() {
                match queue.recv().await {
                    Some(miss) => self.admit(miss, &mut next),
                    None => return,
                }
            }
            while next.len() < READ_MAX
                && let Ok(miss) = queue.try_recv()
            {
                self.admit(miss, &mut next);
            }
            if !next.is_empty() {
                next = self.read(lane, next, &mut queue).await;
            }
        }
    }

    /// Answers a miss that has become a hit in the meantime, and adds any other to `waiting`. A
    /// caller that has given up is left out: reads for such callers would delay all others once the
    /// queue takes longer than their deadline.
    fn admit(&self, (id, waiter): (LinkId, Waiter), waiting: &mut Waiting) {
        if waiter.found.is_closed() {
            return;
        }
        let known = waiter.name.and_then(|name| self.cache.get(&name));
        match known.filter(|cached| self.invalidation.is_fresh(cached.read_at)) {
            // The caller may have given up.
            Some(cached) => drop(waiter.found.send(Ok(Some(Arc::clone(&cached.link))))),
            None => waiting.entry(id).or_default().push(waiter),
        }
    }

    /// Reads a batch and answers it. Returns the misses that arrived meanwhile and were not
    /// answered along with it.
    async fn read(&self, lane: usize, batch: Waiting, queue: &mut Misses) -> Waiting {
        self.metrics.link_reads.increment(1);
        let ids: Vec<LinkId> = batch.keys().copied().collect();
        self.metrics.links_asked.increment(u64::try_from(ids.len()).unwrap_or(0));
        // Taken before the source is chosen: `keep` finds any change after that.
        let began = self.invalidation.freshness.now();
        // A caller that bypasses the cache decides by the answer what became of an insert.
        let is_decisive = batch.values().flatten().any(|waiter| waiter.name.is_none());
        let source = if is_decisive { Source::Primary } else { self.invalidation.source(&ids) };
        let read = self.links.read(&ids, source).await;
        self.invalidation.lane(lane).read_failed.store(read.is_err(), Ordering::Relaxed);
        // Collected only now: waking up for each arrival would cost more than a redirect's share of
        // the read.
        let (mut late, mut next) = (Waiting::new(), Waiting::new());
        // Late misses count as well: those that come back join the next read.
        while next.len() + late.len() < READ_MAX
            && let Ok((id, waiter)) = queue.try_recv()
        {
            if waiter.found.is_closed() {
                continue;
            }
            // A caller that bypasses the cache shares no answer that a replica may have given.
            let shares = waiter.name.is_some() && batch.contains_key(&id);
            let waiting = if shares { &mut late } else { &mut next };
            waiting.entry(id).or_default().push(waiter);
        }
        for (id, waiters) in self.answer(batch, late, began, read) {
            next.entry(id).or_default().extend(waiters);
        }
        next
    }

    /// Answers a batch's waiters, and the late ones whose link was found. Returns the other late
    /// ones.
    fn answer(
        &self,
        batch: Waiting,
        mut late: Waiting,
        began: ReadAt,
        read: Result<Reading, StoreError>,
    ) -> Waiting {
        let reading = match read {
            Ok(reading) => reading,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, ids = batch.len(), "read links");
                for waiter in batch.into_values().chain(late.into_values()).flatten() {
                    let _ = waiter.found.send(Err(LookupError::NoStore));
                }
                return Waiting::new();
            }
        };
        if !reading.complete {
            self.invalidation.note_primary_away();
        }
        let absent = self.absent(&reading, began);
        let rows: HashMap<LinkId, Row> = self.rows(reading, &absent).collect();
        for (id, waiters) in batch {
            let row = rows.get(&id).unwrap_or(&absent);
            let shares = late.contains_key(&id) && self.may_be_shared(id, row);
            let shared = if shares { late.remove(&id).unwrap_or_default() } else { Vec::new() };
            let mut kept = None;
            for Waiter { name, found } in waiters.into_iter().chain(shared) {
                let answer = match name.map_or(Present::Row, |name| self.present(&name, row)) {
                    Present::Row => {
                        if let Some(name) = name.filter(|name| kept.replace(*name) != Some(*name)) {
                            self.keep(name, id, row);
                        }
                        row.link.clone()
                    }
                    Present::Cached(link) => Some(link),
                    Present::Unknown => {
                        // The next read asks the primary.
                        self.invalidation.note_changed(id);
                        late.entry(id).or_default().push(Waiter { name, found });
                        continue;
                    }
                };
                // A server that may lag behind can prove a presence, but no absence. To a caller
                // that bypasses the cache it proves nothing.
                let is_there = answer.as_ref().is_some_and(|link| !link.is_deleted());
                let known = row.complete || (is_there && name.is_some());
                let _ = found.send(if known { Ok(answer) } else { Err(LookupError::NoStore) });
            }
        }
        late
    }

    /// Returns whether callers that arrived during the read may have its answer.
    fn may_be_shared(&self, id: LinkId, row: &Row) -> bool {
        // A deleted link is an absence, which may have ended since this read began.
        let is_there = row.link.as_ref().is_some_and(|link| !link.is_deleted());
        // Nor may the answer be older than an edit that a late caller knows of.
        let is_older = || {
            self.invalidation.changes.is_outdated(id, row.as_of)
                && self.invalidation.has_rule(SafetyRule::Joined)
        };
        (is_there || !self.invalidation.has_rule(SafetyRule::Late))
            && self.invalidation.is_fresh(row.as_of)
            && !is_older()
    }

    /// Returns what a read shows of a link without a row.
    fn absent(&self, reading: &Reading, began: ReadAt) -> Row {
        let complete = reading.complete || !self.invalidation.has_rule(SafetyRule::Complete);
        Row { link: None, as_of: began, is_copied: false, complete }
    }

    /// Returns the rows of a read with their ids, without those of a copy that are outdated.
    fn rows<'a>(&'a self, reading: Reading, absent: &'a Row) -> impl Iterator<Item = (LinkId, Row)> + 'a {
        let Reading { links, copied, complete } = reading;
        let row = |link: Link, as_of, is_copied| {
            (link.id, Row { link: Some(Arc::new(link)), as_of, is_copied, ..absent.clone() })
        };
        let copied = copied.into_iter().flat_map(move |(links, as_of)| {
            // Rows of another server than the primary are as recent as it can prove, and count as
            // read at that time.
            let as_of = self.invalidation.freshness.at(as_of).min(absent.as_of);
            let is_usable = move |link: &Link| complete || self.invalidation.is_latest_known(link.id, as_of);
            links.into_iter().filter(is_usable).map(move |link| row(link, as_of, true))
        });
        links.into_iter().map(move |link| row(link, absent.as_of, false)).chain(copied)
    }

    /// Reads links into the cache, without those that are in it already.
    pub(super) async fn load(&self, ids: &[LinkId], mint: &Mint) -> Result<Loaded, StoreError> {
        let began = self.invalidation.freshness.now();
        let reading = self.links.read(ids, self.invalidation.source(ids)).await?;
        Ok(self.add(reading, began, mint))
    }

    /// Adds what a read has shown to the cache, unless that has the link. A miss that keeps a link
    /// meanwhile waits for all of them: about as long as for their read.
    fn add(&self, reading: Reading, began: ReadAt, mint: &Mint) -> Loaded {
        let (absent, mut loaded) = (self.absent(&reading, began), Loaded::default());
        let kept = self.kept.read().expect("no code panics while it holds this lock");
        for (id, row) in self.rows(reading, &absent) {
            let Some(link) = row.link.as_ref().filter(|link| !link.is_deleted()) else { continue };
            let (name, cached) = (Name::of(mint, id), Cached::new(link, row.as_of));
            loaded.links += 1;
            loaded.bytes += u64::from(cached.bytes);
            if !link.is_named_by_id() {
                loaded.named.push(Arc::clone(link));
            }
            // A read that began later may have shown the link meanwhile. The cache is not asked if
            // the set can tell: that takes a sixth of a load.
            let is_there = match &*kept {
                Some(names) if !row.is_copied => names.contains(&name),
                _ => self.cache.contains_key(&name),
            };
            if !is_there {
                self.cache.insert(name, cached);
            }
            self.check_kept(name, id, &row);
        }
        loaded
    }

    /// Compares a row with the cached link. Of the primary, also an older row is the present one: a
    /// fail-over may have lost the newer one.
    fn present(&self, name: &Name, row: &Row) -> Present {
        let Some(link) = row.link.as_ref().filter(|_| row.is_copied) else { return Present::Row };
        let cached = self.cache.get(name).filter(|cached| cached.link.id == link.id);
        let Some(cached) = cached.filter(|_| self.invalidation.has_rule(SafetyRule::Newer)) else {
            return Present::Row;
        };
        let (version, shown) = (cached.link.version(), link.version());
        if (version, cached.read_at) < (shown, row.as_of) {
            Present::Row
        } else if row.complete && version > shown && cached.read_at < row.as_of {
            Present::Unknown
        } else {
            Present::Cached(Arc::clone(&cached.link))
        }
    }

    /// Inserts a link that was read into the cache, or evicts one that no longer exists.
    fn keep(&self, name: Name, id: LinkId, row: &Row) {
        match &row.link {
            // A deleted link is an absence: its slug may be taken again at any moment.
            Some(link) if link.is_deleted() && self.invalidation.has_rule(SafetyRule::Deleted) => {
                self.cache.invalidate(&name);
            }
            Some(link) => {
                let mut kept = self.kept();
                if let Some(names) = kept.as_mut() {
                    names.insert(name);
                }
                self.cache.insert(name, Cached::new(link, row.as_of));
            }
            None if row.complete => self.cache.invalidate(&name),
            None => {}
        }
        self.check_kept(name, id, row);
    }

    pub(super) fn kept(&self) -> RwLockWriteGuard<'_, Option<HashSet<Name>>> {
        self.kept.write().expect("no code panics while it holds this lock")
    }

    /// Evicts a link that was changed after the read, and notes what the read has shown.
    fn check_kept(&self, name: Name, id: LinkId, row: &Row) {
        if self.invalidation.changes.is_outdated(id, row.as_of)
            && self.invalidation.has_rule(SafetyRule::ChangedSince)
        {
            self.cache.invalidate(&name);
        }
        if let Some(link) = row.link.as_ref().filter(|_| !row.is_copied) {
            self.invalidation.note_shown(id, row.as_of, link.is_deleted());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use daemon::Recorder;
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::lookup::tests;

    const SECOND: Duration = Duration::from_secs(1);

    fn reader() -> Reader {
        let config = tests::config(60 * SECOND, 60 * SECOND);
        Reader {
            links: tests::broken(),
            cache: LinkCache::new(config.cache_bytes, 0),
            invalidation: Arc::new(InvalidationState::new(config, 1)),
            metrics: Metrics::new(&Recorder::new()),
            kept: RwLock::default(),
        }
    }

    fn link(version: u64) -> Link {
        Link::clone(&tests::link(1, version))
    }

    /// Answers one lookup with a reading. Returns the version that the caller gets; `None` if it
    /// waits for the next read.
    fn ask(reader: &Reader, reading: Reading) -> Option<u64> {
        let id = link(0).id;
        let (found, mut answer) = oneshot::channel();
        let batch = Waiting::from([(id, vec![Waiter { name: Some(Name::Id(id)), found }])]);
        let waiting = reader.answer(batch, Waiting::new(), reader.invalidation.freshness.now(), Ok(reading));
        let answer = answer.try_recv().ok();
        assert_eq!(waiting.contains_key(&id), answer.is_none());
        answer.map(|found| found.unwrap().unwrap().version())
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_a_fail_over_has_lost_does_not_outlive_it() {
        let reader = reader();
        reader.invalidation.freshness.mark_told_since(Instant::now());
        let of_primary = |version| Reading { links: vec![link(version)], copied: None, complete: true };
        let of_copy = |version, as_of| Reading {
            links: Vec::new(),
            copied: Some((vec![link(version)], as_of)),
            complete: true,
        };
        let before = Instant::now();
        advance(61 * SECOND).await;
        assert_eq!(ask(&reader, of_primary(2)), Some(2));
        assert_eq!(ask(&reader, of_copy(0, before)), Some(2), "the copy lags");
        assert_ne!(reader.invalidation.source(&[link(0).id]), Source::Primary);

        advance(SECOND).await;
        assert_eq!(ask(&reader, of_copy(1, Instant::now())), None, "only the primary knows");
        assert_eq!(reader.invalidation.source(&[link(0).id]), Source::Primary);
        advance(SECOND).await;
        assert_eq!(ask(&reader, of_primary(1)), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_load_replaces_no_later_read_and_keeps_nothing_that_was_changed_since() {
        let reader = reader();
        *reader.kept() = Some(HashSet::new());
        reader.invalidation.freshness.mark_told_since(Instant::now());
        let (mint, began) = (tests::mint(), reader.invalidation.freshness.now());
        let add = |version| {
            let reading = Reading { links: vec![link(version)], copied: None, complete: true };
            let Loaded { links, bytes, named } = reader.add(reading, began, &mint);
            assert!((links, named.len()) == (1, 1) && bytes > 0);
        };
        let cached = || reader.cache.get(&Name::Id(link(0).id)).map(|cached| cached.link.version());
        add(1);
        assert_eq!(cached(), Some(1));
        advance(SECOND).await;
        ask(&reader, Reading { links: vec![link(2)], copied: None, complete: true });
        add(1);
        assert_eq!(cached(), Some(2), "the load had begun before");

        reader.invalidation.note_changed(link(0).id);
        reader.cache.invalidate(&Name::Id(link(0).id));
        *reader.kept() = Some(HashSet::new());
        add(1);
        assert_eq!(cached(), None, "it was changed meanwhile");
    }
}
