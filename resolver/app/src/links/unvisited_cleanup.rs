//! Recording of last visits, and the removal of links that have not been visited for long (E3).
//!
//! 1. Each resolver reports a link's visit to the database at most once an hour. That is precise
//!    enough, and a popular link costs no more than a rare one. Visits that could not be reported
//!    are reported with the next ones.
//! 2. The removal is off unless the operator sets an age for it. One resolver at a time runs it, in
//!    steps of a few hundred links that are each a transaction. If that resolver dies, another one
//!    continues where it stopped.
//! 3. A removed link is deleted as if a person had deleted it: its row stays, and the audit log has
//!    an entry.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use codes::LinkId;
use daemon::TaskSupervisor;
use foldhash::fast::RandomState;
use jiff::Timestamp;
use store::{Catalog, Sweep};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

use lookup::{Lookup, metrics::Metrics};

use crate::chore;

/// The interval at which a link's visits are reported.
const TOLD_EVERY: Duration = Duration::from_secs(3_600);
/// Maximum number of links whose last report is remembered. Each takes some tens of bytes.
const TOLD_MAX: usize = 200_000;
/// How long visits are collected before they are reported.
const COLLECTED_FOR: Duration = Duration::from_secs(5);
/// Maximum number of collected links. Further links are reported with their next visit.
const COLLECTED_MAX: usize = 10_000;
/// Capacity of the channel of visited links from the task that counts visits.
const WAITING: usize = 4_096;
/// Interval at which a resolver asks whether it is its turn.
const ASKED_EVERY: Duration = Duration::from_secs(30);
/// Pause after a removal has examined every link.
const EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Receives all visits and reports those that are due.
///
/// It belongs to the one task that counts visits and is consulted at every redirect. No other table
/// is read as often, so it is a plain one that no other task shares.
pub struct LastVisits {
    links: mpsc::Sender<(LinkId, Timestamp)>,
    /// When each link was last reported, in seconds since 1970.
    told: HashMap<LinkId, i64, RandomState>,
    /// In seconds.
    told_every: i64,
}

impl LastVisits {
    /// Starts the task that reports to the database, on the current runtime.
    pub fn start(
        supervisor: &TaskSupervisor,
        catalog: Arc<dyn Catalog>,
        unvisited_for: Option<Duration>,
    ) -> Self {
        let (links, waiting) = mpsc::channel(WAITING);
        let told_every = i64::try_from(told_every(unvisited_for).as_secs()).unwrap_or(i64::MAX);
        supervisor.spawn("noter of visited links", note(catalog, waiting));
        Self { links, told: HashMap::default(), told_every }
    }

    /// Records a visit. It never waits: a visit that finds the channel full is dropped, and the
    /// link's next one is reported.
    pub fn note(&mut self, link: LinkId, at: Timestamp) {
        let at_second = at.as_second();
        if self.told.get(&link).is_some_and(|told| at_second - told < self.told_every) {
            return;
        }
        if self.links.try_send((link, at)).is_ok() {
            if self.told.len() >= TOLD_MAX {
                // Every link is then reported once more, which costs no more than as many new links
                // did.
                self.told.clear();
            }
            self.told.insert(link, at_second);
        }
    }
}

/// Returns the interval at which a link's visits are reported: well below the age at which the link
/// would be removed.
fn told_every(unvisited_for: Option<Duration>) -> Duration {
    unvisited_for.map_or(TOLD_EVERY, |span| TOLD_EVERY.min(span / 4))
}

async fn note(catalog: Arc<dyn Catalog>, mut waiting: mpsc::Receiver<(LinkId, Timestamp)>) {
    let mut seen: BTreeMap<LinkId, Timestamp> = BTreeMap::new();
    loop {
        if seen.is_empty() {
            let Some((link, at)) = waiting.recv().await else { return };
            seen.insert(link, at);
        }
        let until = Instant::now() + COLLECTED_FOR;
        while seen.len() < COLLECTED_MAX
            && let Ok(Some((link, at))) = timeout_at(until, waiting.recv()).await
        {
            seen.insert(link, at);
        }
        let list: Vec<(LinkId, Timestamp)> = seen.iter().map(|(link, at)| (*link, *at)).collect();
        match catalog.note_visits(&list).await {
            Ok(()) => seen.clear(),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    links = list.len(),
                    "note visited links"
                );
                if waiting.is_closed() {
                    return;
                }
                // They are reported with the next ones. Without room for more, further links wait
                // for their next visit.
                sleep(COLLECTED_FOR).await;
            }
        }
    }
}

/// Removes links that have not been visited for `unvisited_for`, whenever it is this process's
/// turn. No other process has the name `holder`.
pub async fn remove_unvisited(
    catalog: Arc<dyn Catalog>,
    lookup: Arc<Lookup>,
    metrics: Arc<Metrics>,
    holder: String,
    unvisited_for: Duration,
) {
    let sweep = Sweep {
        holder,
        held_for: chore::HELD_FOR,
        // A visit may be reported this much later than it happened.
        kept_for: unvisited_for + told_every(Some(unvisited_for)),
        every: EVERY.min(unvisited_for / 4),
    };
    loop {
        let step = catalog.sweep(&sweep).await;
        for removed in step.iter().flatten().flatten() {
            metrics.links_removed.increment(1);
            lookup.changed(*removed);
        }
        let has_more = step.map(|removed| removed.is_some());
        sleep(chore::pause("remove unvisited links", ASKED_EVERY.min(unvisited_for / 4), has_more)).await;
    }
}
