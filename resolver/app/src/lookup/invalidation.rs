//! Cache invalidation by change notifications, and how long cached links and replicas may be
//! trusted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use codes::{LinkId, Mint};
use moka::{policy::EvictionPolicy, sync::Cache};
use store::{Change, Source};
use tokio::{sync::mpsc, time::Instant};

use super::{
    cache::{Cached, Generations, LinkCache, Name},
    unminted_slugs::UnmintedSlugs,
};
use supply::safety_rule::{self, SafetyRule};

use crate::freshness::{Freshness, ReadAt};

/// Maximum number of recently changed links that are remembered.
const CHANGED_MAX: u64 = 100_000;
/// A time longer than any read takes.
const READ_MAX: Duration = Duration::from_secs(60);
/// How long outdated entries are served at once after a read of a newer version has failed, in
/// milliseconds.
const STORE_AWAY_MS: u64 = 1_000;

/// State of the change notifications.
pub(super) struct InvalidationState {
    pub(super) freshness: Freshness,
    /// Maximum lag of a replica that links are read from.
    replica_lag: Duration,
    /// Recently changed links, with the time of each notification.
    changed: Cache<LinkId, ReadAt>,
    /// While the store is down, cached entries are served without a read until this time, in
    /// milliseconds since `start`.
    store_away: AtomicU64,
    /// Whether the read that ended last has failed.
    read_failed: AtomicBool,
    start: Instant,
}

impl InvalidationState {
    pub(super) fn new(replica_lag: Duration) -> Self {
        let changed = Cache::builder()
            .max_capacity(CHANGED_MAX)
            .eviction_policy(EvictionPolicy::lru())
            // `keep` needs an entry for as long as a read may take.
            .time_to_live(replica_lag.max(READ_MAX))
            .build();
        Self {
            replica_lag,
            freshness: Freshness::new(),
            changed,
            store_away: AtomicU64::new(0),
            read_failed: AtomicBool::new(false),
            start: Instant::now(),
        }
    }

    /// Returns the servers that may answer a read of these links.
    ///
    /// A replica may lack the latest changes. Which those are is known only if no change was missed
    /// for the time of the maximum lag, and if there is room to remember them all.
    pub(super) fn source(&self, ids: &[LinkId]) -> Source {
        let is_told =
            self.freshness.is_told_for(self.replica_lag) || !safety_rule::is_on(SafetyRule::ToldFor);
        let is_known = is_told && self.changed.entry_count() < CHANGED_MAX / 2;
        let lags = || ids.iter().any(|id| self.changed.contains_key(id));
        if is_known && (!lags() || !safety_rule::is_on(SafetyRule::ChangedLately)) {
            Source::Any { lag: self.replica_lag }
        } else {
            Source::Primary
        }
    }

    pub(super) fn is_fresh(&self, cached: &Cached) -> bool {
        let is_sure = cached.is_sure || !safety_rule::is_on(SafetyRule::Sure);
        let settled = is_sure && self.freshness.is_settled(cached.read_at);
        settled || self.freshness.is_young(cached.read_at)
    }

    /// Returns whether the result of a read that began at `began` may be given to callers that
    /// arrived later: no change can have been missed since, or the result is young.
    pub(super) fn may_be_shared(&self, began: ReadAt) -> bool {
        self.freshness.is_settled(began) || self.freshness.is_young(began)
    }

    pub(super) fn note_store_away(&self) {
        self.store_away.store(self.millis() + STORE_AWAY_MS, Ordering::Relaxed);
    }

    pub(super) fn store_is_away(&self) -> bool {
        self.millis() < self.store_away.load(Ordering::Relaxed)
    }

    /// Records whether a read has failed.
    pub(super) fn set_read_failed(&self, failed: bool) {
        self.read_failed.store(failed, Ordering::Relaxed);
    }

    /// Returns whether the read that ended last has failed.
    pub(super) fn read_failed(&self) -> bool {
        self.read_failed.load(Ordering::Relaxed)
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn note_changed(&self, id: LinkId) {
        self.changed.insert(id, self.freshness.now());
    }

    pub(super) fn changed_since(&self, id: LinkId, time: ReadAt) -> bool {
        self.changed.get(&id).is_some_and(|heard| heard >= time)
    }
}

/// The task that evicts changed links from the cache.
pub(super) struct Listener {
    pub(super) mint: Arc<Mint>,
    pub(super) cache: LinkCache,
    pub(super) generations: Arc<Generations>,
    pub(super) news: Arc<InvalidationState>,
    pub(super) picked: Arc<UnmintedSlugs>,
}

impl Listener {
    pub(super) async fn run(self, mut changes: mpsc::Receiver<Change>) {
        while let Some(change) = changes.recv().await {
            match change {
                Change::Listening(since) => {
                    self.news.freshness.mark_told_since(since);
                    self.picked.reload();
                }
                Change::Heard(until) => self.picked.trust(until),
                Change::Alone => self.picked.trust_always(),
                Change::Picked(id) => {
                    self.picked.add(id);
                    self.forget(id);
                }
                Change::Away => {
                    self.news.freshness.mark_not_told();
                    // Threads that keep copies of entries have to consult this cache again.
                    self.generations.advance_all();
                }
                Change::Links(ids) => ids.into_iter().for_each(|id| self.forget(id)),
            }
        }
    }

    fn forget(&self, id: LinkId) {
        // In this order: a reader that misses the note has inserted its link before the
        // invalidation.
        self.news.note_changed(id);
        self.cache.invalidate(&Name::of(&self.mint, id));
    }
}
