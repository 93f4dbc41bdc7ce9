//! Which links are visited, and the removal of those that nobody has visited for long (E3).
//!
//! 1. Each resolver tells the database of a link's visit once an hour at most: that is as fine as anybody needs it, and a popular link costs no more
//!    than a rare one. What could not be told is told with the next visits.
//! 2. The removal is off unless an operator says after how long. One resolver at a time does it, in steps of a few hundred links that are each a
//!    transaction, and another one goes on where it was when it dies.
//! 3. A removed link is deleted as by a person: its row stays, and the log has it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use codes::LinkId;
use daemon::Vitals;
use foldhash::fast::RandomState;
use jiff::Timestamp;
use store::{Catalog, Sweep, Swept};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

use crate::{lookup::Lookup, metrics::Metrics};

/// How often a link's visit is told.
const TOLD_EVERY: Duration = Duration::from_secs(3_600);
/// Links whose visits were told lately. Each takes some tens of bytes.
const TOLD_MAX: usize = 200_000;
/// How long visits are collected before they are told.
const COLLECTED_FOR: Duration = Duration::from_secs(5);
/// Links that wait to be told; more wait for the next visit.
const COLLECTED_MAX: usize = 10_000;
/// Visited links on the way from the counter.
const WAITING: usize = 4_096;
/// How long a resolver that does the removal may be silent before another one does it.
const HELD_FOR: Duration = Duration::from_secs(60);
/// How long it pauses between two steps: others use the database too.
const BREATH: Duration = Duration::from_millis(50);
/// How often it is asked whose turn it is.
const ASKED_EVERY: Duration = Duration::from_secs(30);
/// How long a removal rests once it has seen every link.
const EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Hears of visits. It belongs to the one task that counts them, which hears of every redirect: no other table is asked as often, so it is a
/// plain one that nobody shares.
pub struct Seen {
    links: mpsc::Sender<(LinkId, Timestamp)>,
    /// When each link was told last, in seconds since 1970.
    told: HashMap<LinkId, i64, RandomState>,
    /// In seconds.
    told_every: i64,
}

impl Seen {
    /// The task that tells the database, on the current runtime.
    #[must_use]
    pub fn start(vitals: &Vitals, catalog: Arc<dyn Catalog>, unvisited_for: Option<Duration>) -> Self {
        let (links, waiting) = mpsc::channel(WAITING);
        let told_every = i64::try_from(told_every(unvisited_for).as_secs()).unwrap_or(i64::MAX);
        vitals.spawn("noter of visited links", note(catalog, waiting));
        Self { links, told: HashMap::default(), told_every }
    }

    /// Notes a visit. It never waits: what finds no room is noted with the next visit.
    pub fn note(&mut self, link: LinkId, at: Timestamp) {
        let at_second = at.as_second();
        if self.told.get(&link).is_some_and(|told| at_second - told < self.told_every) {
            return;
        }
        if self.links.try_send((link, at)).is_ok() {
            if self.told.len() >= TOLD_MAX {
                // All are told once more then: that costs no more than as many new ones did.
                self.told.clear();
            }
            self.told.insert(link, at_second);
        }
    }
}

/// How often a link's visit is told: well within the time after which it would be removed.
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
                // They are told with the next ones. When there is no room for more, those wait for their next visit.
                sleep(COLLECTED_FOR).await;
            }
        }
    }
}

/// Removes links that nobody has visited for so long.
pub struct Sweeper {
    /// The database.
    pub catalog: Arc<dyn Catalog>,
    /// Its cache is invalidated.
    pub lookup: Arc<Lookup>,
    /// Counts removed links.
    pub metrics: Arc<Metrics>,
    /// A name that no other process has.
    pub holder: String,
    /// The age at which an unvisited link is removed.
    pub unvisited_for: Duration,
}

impl Sweeper {
    /// Does it whenever it is this process's turn.
    pub async fn run(self) {
        let sweep = Sweep {
            holder: self.holder.clone(),
            held_for: HELD_FOR,
            // A visit may have been told so much later than it was.
            unvisited_for: self.unvisited_for + told_every(Some(self.unvisited_for)),
            every: EVERY.min(self.unvisited_for / 4),
        };
        loop {
            match self.catalog.sweep(&sweep).await {
                Ok(Swept::Some(removed)) => {
                    self.metrics.links_removed.increment(removed.len() as u64);
                    removed.iter().for_each(|id| self.lookup.changed(*id));
                    sleep(BREATH).await;
                }
                Ok(Swept::NotOurs | Swept::TooEarly | Swept::Done) => {
                    sleep(ASKED_EVERY.min(self.unvisited_for / 4)).await;
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "remove unvisited links");
                    sleep(ASKED_EVERY).await;
                }
            }
        }
    }
}
