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
use store::{Change, Source};
use tokio::sync::mpsc;

use super::{
    LookupConfig,
    cache::{Cached, LinkCache, Name},
    known_changes::KnownChanges,
};
use supply::safety_rule::SafetyRule;

use crate::freshness::{Freshness, ReadAt};

/// How long outdated entries are served at once after a read of a newer version has failed, in
/// microseconds.
const AWAY_MICROS: u64 = 1_000_000;

pub(super) struct InvalidationState {
    pub(super) freshness: Freshness,
    config: LookupConfig,
    pub(super) changes: KnownChanges,
    /// Whether the store answers, for each queue of misses.
    lanes: Box<[Lane]>,
    /// The same as [`Lane::store_away`], while a copy answers in place of the primary.
    primary_away: AtomicU64,
}

/// Whether the store, or a node of a distributed one, answers reads: another node's takedowns must
/// show while it does not.
#[derive(Default)]
pub(super) struct Lane {
    /// While the store is down, cached entries are served without a read until this time, as in
    /// [`ReadAt`].
    store_away: AtomicU64,
    /// Whether the read that ended last has failed.
    pub(super) read_failed: AtomicBool,
}

impl InvalidationState {
    pub(super) fn new(config: LookupConfig, lanes: usize) -> Self {
        Self {
            freshness: Freshness::new(config.rules),
            config,
            changes: KnownChanges::default(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            primary_away: AtomicU64::new(0),
        }
    }

    pub(super) fn lane(&self, lane: usize) -> &Lane {
        &self.lanes[lane]
    }

    /// Returns whether a safety rule is in force.
    pub(super) fn has_rule(&self, rule: SafetyRule) -> bool {
        self.config.rules.keep(rule)
    }

    /// Returns the servers that may answer a read of these links.
    ///
    /// A replica may lack the latest changes. Which those are is known only if no change was missed
    /// for the time of the maximum lag.
    pub(super) fn source(&self, ids: &[LinkId]) -> Source {
        let lag = self.config.replica_lag;
        let is_told = self.freshness.is_told_for(lag) || !self.has_rule(SafetyRule::ToldFor);
        let since = self.freshness.ago(lag);
        let lags = || ids.iter().any(|id| self.changes.is_outdated(*id, since));
        if is_told && (!lags() || !self.has_rule(SafetyRule::ChangedLately)) {
            Source::Any { lag }
        } else {
            Source::Primary
        }
    }

    /// Returns whether a link that was read at `read_at` may be given to later callers: no change
    /// can have been missed since, or the link is young.
    pub(super) fn is_fresh(&self, read_at: ReadAt) -> bool {
        self.freshness.is_settled(read_at) || self.freshness.is_young(read_at)
    }

    /// Returns whether a row of a copy of the database is the latest that this process knows of.
    pub(super) fn is_latest_known(&self, id: LinkId, read_at: ReadAt) -> bool {
        let is_outdated = self.changes.is_outdated(id, read_at) && self.has_rule(SafetyRule::Outdated);
        !is_outdated && self.freshness.was_current_within(read_at, self.config.serve_stale_for)
    }

    /// Records that a link could not be read, unless a copy answers for others.
    pub(super) fn note_store_away(&self, lane: usize) {
        if !self.copy_answers() {
            self.lanes[lane].store_away.store(self.freshness.now().0 + AWAY_MICROS, Ordering::Relaxed);
        }
    }

    pub(super) fn store_is_away(&self, lane: usize) -> bool {
        self.freshness.now().0 < self.lanes[lane].store_away.load(Ordering::Relaxed)
    }

    pub(super) fn note_primary_away(&self) {
        self.primary_away.store(self.freshness.now().0 + AWAY_MICROS, Ordering::Relaxed);
    }

    /// Returns whether a copy of the database has answered lately, in place of the primary.
    fn copy_answers(&self) -> bool {
        self.freshness.now().0 < self.primary_away.load(Ordering::Relaxed)
    }

    /// Returns whether an entry is served without a read. While no server answers that is any;
    /// while a copy does, which may know of later changes, an entry of which no change can have
    /// been missed.
    pub(super) fn is_not_read_again(&self, cached: &Cached, lane: usize) -> bool {
        self.store_is_away(lane) || (self.copy_answers() && self.freshness.was_told_of(cached.read_at))
    }

    pub(super) fn note_changed(&self, id: LinkId) {
        self.changes.note(id, self.freshness.now());
    }

    /// Notes that the primary has shown a link at `read_at`, if no notification may tell of the
    /// changes before that. A copy may be older.
    pub(super) fn note_shown(&self, id: LinkId, read_at: ReadAt, is_deleted: bool) {
        let is_told = self.freshness.is_told_for(Duration::ZERO);
        // The notification of a deletion may come after the row, or be lost with the connection.
        if (is_deleted || !is_told) && self.has_rule(SafetyRule::Shown) {
            self.changes.note(id, ReadAt(read_at.0.saturating_sub(1)));
        }
    }
}

pub(super) async fn listen(
    mint: Arc<Mint>,
    cache: LinkCache,
    invalidation: Arc<InvalidationState>,
    mut changes: mpsc::Receiver<Change>,
) {
    while let Some(change) = changes.recv().await {
        match change {
            Change::Listening(since) => invalidation.freshness.mark_told_since(since),
            Change::Heard(until) => invalidation.freshness.mark_told_until(until),
            Change::Away => {
                invalidation.freshness.mark_not_told();
                // Threads that keep copies of entries have to consult this cache again.
                cache.generations.advance_all();
            }
            Change::Links(ids) => ids.into_iter().for_each(|id| {
                // In this order: a reader that misses the note has inserted its link before the
                // invalidation.
                invalidation.note_changed(id);
                cache.invalidate(&Name::of(&mint, id));
            }),
        }
    }
}
