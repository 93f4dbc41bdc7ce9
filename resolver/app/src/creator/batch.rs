//! Group commit: the links that arrive while a batch is being written form the next batch. It
//! starts when the current one has ended, or beside it if many links wait or the current one is
//! slow.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::join_all, stream::FuturesUnordered};
use jiff::Timestamp;
use links::NewLink;
use numbers::StoreEpoch;
use store::{BATCH_MAX, Bucket, InsertError, Inserted, Links, StoreError};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use lookup::metrics::Metrics;

/// If this many links wait, they are written beside the batch in progress; fewer links wait for its
/// end, and accumulate. Measured with `bench create` on 2026-11-21 and 22: without this 64 clients
/// made 1.29 × pgbench's rate and 256 made 2.34, with one batch at a time 1.49 and 2.02.
const LARGE: usize = 100;

/// The time after which a batch starts beside the last one. Batches that wait longer than this, for
/// a disk or for a database that is far away, are staggered: they can wait together. With so many
/// lanes, each starts that share of a batch's wait after the one before.
///
/// By `bench create` on 2026-11-29 with a flush of 2 ms, 8 and 64 clients made 0.80 and 0.86 ×
/// pgbench's rate instead of 0.62 and 0.62.
const SLOW: Duration = Duration::from_millis(1);
/// The part of a batch's time that is not a wait, for each link. Where the processor is what limits
/// creates, smaller batches would only cost more of it.
const WORK: Duration = Duration::from_micros(20);
/// The least time between the starts of two batches, unless the first has ended or many links wait.
const CLOSEST: Duration = Duration::from_micros(250);
/// The longest wait that counts towards the average: a batch whose connection hangs must not hold
/// up those beside it.
const SLOWEST: Duration = Duration::from_millis(20);

pub(super) enum Outcome {
    Stored(Timestamp),
    Taken,
    /// Another link has the code on the link's domain. The number has no row.
    CodeTaken,
    Failed,
    /// Surely not stored: the database has failed over since the number was allocated.
    AnotherHistory,
    Unknown,
}

impl From<&InsertError> for Outcome {
    fn from(error: &InsertError) -> Self {
        match error {
            InsertError::Failed(StoreError::AnotherHistory) => Self::AnotherHistory,
            InsertError::Failed(_) => Self::Failed,
            InsertError::Unknown(_) => Self::Unknown,
        }
    }
}

/// A link that waits for the next batch.
pub(super) struct Waiting<H> {
    pub(super) link: NewLink,
    /// The history of the database that its number is of, unless the number is that of its slug.
    pub(super) history: H,
    pub(super) deadline: Instant,
    pub(super) outcome: oneshot::Sender<Outcome>,
}

/// Adds a link to the next batch and waits for its outcome.
pub(super) async fn queue<H>(
    batch: &mpsc::Sender<Waiting<H>>,
    link: NewLink,
    history: H,
    deadline: Instant,
) -> Outcome {
    let (outcome, answered) = oneshot::channel();
    match batch.send(Waiting { link, history, deadline, outcome }).await {
        Ok(()) => answered.await.unwrap_or(Outcome::Unknown),
        Err(_) => Outcome::Failed,
    }
}

/// Writes batches until all senders are dropped.
///
/// A link whose deadline has passed is not written: a database that hangs must not keep a long
/// queue waiting, batch after batch.
pub(super) async fn write_batches(
    store: Arc<dyn Links>,
    mut waiting: mpsc::Receiver<Waiting<Arc<StoreEpoch>>>,
    metrics: Arc<Metrics>,
) {
    let (mut batch, mut under_way) = (Vec::with_capacity(BATCH_MAX), FuturesUnordered::new());
    let lanes = store.insert_lanes().max(1);
    let mut pace = Pace::new(lanes);
    let mut due = pin!(sleep(SLOW));
    loop {
        let free = lanes.saturating_sub(under_way.len());
        let is_large = batch.len() + waiting.len() >= LARGE;
        let is_due = under_way.is_empty() || (free > 0 && (is_large || pace.is_due()));
        if is_due && !batch.is_empty() {
            let share = (waiting.len() / free.max(1)).clamp(LARGE, BATCH_MAX);
            if batch.len() < share {
                let rest = share - batch.len();
                let _ = waiting.recv_many(&mut batch, rest).now_or_never();
            }
            under_way
                .extend(sort(&*store, &mut batch).into_iter().map(|batch| write(&*store, batch, &metrics)));
            pace.start();
            due.as_mut().reset(pace.due());
            continue;
        }
        // While batches are quick, the queue is not examined at each arrival: waking up for each of
        // them costs more than it gains. To stagger slow ones, timers of a millisecond are too
        // coarse.
        tokio::select! {
            link = waiting.recv(), if is_due || (free > 0 && pace.is_slow()) => match link {
                Some(link) => batch.push(link),
                None => break,
            },
            Some(wait) = under_way.next() => pace.note(wait),
            () = &mut due, if !is_due && free > 0 => due.as_mut().reset(pace.due()),
        }
    }
    under_way.extend(sort(&*store, &mut batch).into_iter().map(|batch| write(&*store, batch, &metrics)));
    under_way.for_each(async |_| {}).await;
}

/// When the next batch starts beside others.
struct Pace {
    lanes: u32,
    started: Instant,
    /// Moving average of a batch's wait.
    wait: Duration,
}

impl Pace {
    fn new(lanes: usize) -> Self {
        let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
        Self { lanes, started: Instant::now(), wait: Duration::ZERO }
    }

    fn start(&mut self) {
        self.started = Instant::now();
    }

    fn note(&mut self, wait: Duration) {
        self.wait = (self.wait * 7 + wait.min(SLOWEST)) / 8;
    }

    fn is_slow(&self) -> bool {
        self.wait >= SLOW
    }

    fn due(&self) -> Instant {
        self.started + if self.is_slow() { (self.wait / self.lanes).max(CLOSEST) } else { SLOW }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }
}

/// Writes links with custom slugs until all senders are dropped, one batch after the other: each
/// takes the lock of all notifications. Links without a custom slug do not wait for them.
pub(super) async fn write_slugs(
    store: Arc<dyn Links>,
    mut waiting: mpsc::Receiver<Waiting<()>>,
    metrics: Arc<Metrics>,
) {
    let mut batch = Vec::with_capacity(LARGE);
    while waiting.recv_many(&mut batch, LARGE).await > 0 {
        for Batch { links, outcomes, .. } in sort(&*store, &mut batch) {
            metrics.insert_batches.increment(1);
            let stored = store.insert_slugs(&links).await;
            let of = |stored: Option<Timestamp>| stored.map_or(Outcome::Taken, Outcome::Stored);
            tell(outcomes, self::outcomes(stored, links.len(), of));
        }
    }
}

/// Writes a batch, and returns how long it waited.
async fn write(store: &dyn Links, batch: Batch<Arc<StoreEpoch>>, metrics: &Metrics) -> Duration {
    let started = Instant::now();
    let outcomes = insert(store, metrics, &batch.history, &batch.links).await;
    let work = WORK * u32::try_from(outcomes.len()).unwrap_or(u32::MAX);
    let wait = started.elapsed().saturating_sub(work);
    tell(batch.outcomes, outcomes);
    wait
}

fn tell(waiting: Vec<oneshot::Sender<Outcome>>, outcomes: Vec<Outcome>) {
    for (waiting, outcome) in waiting.into_iter().zip(outcomes) {
        let _ = waiting.send(outcome);
    }
}

/// Links of one history of the database and one bucket, with the channels that wait for their
/// outcomes.
struct Batch<H> {
    history: H,
    bucket: Bucket,
    links: Vec<NewLink>,
    outcomes: Vec<oneshot::Sender<Outcome>>,
}

/// Groups waiting links by the database's history and by bucket, and rejects those past their
/// deadline. There is one group, or two for a moment after the database has failed over, or another
/// bucket was opened.
fn sort<H: PartialEq>(store: &dyn Links, waiting: &mut Vec<Waiting<H>>) -> Vec<Batch<H>> {
    let (now, most) = (Instant::now(), waiting.len());
    let mut batches: Vec<Batch<H>> = Vec::with_capacity(1);
    for Waiting { link, history, deadline, outcome } in waiting.drain(..) {
        if deadline <= now {
            // The send cannot fail: a create holds its receiver until it is answered.
            let _ = outcome.send(Outcome::Failed);
            continue;
        }
        let bucket = store.bucket(link.id);
        let known = batches.iter().position(|batch| batch.bucket == bucket && batch.history == history);
        let index = known.unwrap_or_else(|| {
            let (links, outcomes) = (Vec::with_capacity(most), Vec::with_capacity(most));
            batches.push(Batch { history, bucket, links, outcomes });
            batches.len() - 1
        });
        batches[index].links.push(link);
        batches[index].outcomes.push(outcome);
    }
    batches
}

/// Inserts at most [`BATCH_MAX`] links of one history and one bucket of the database, and returns
/// the outcome of each in the order of `links`.
pub(super) async fn insert(
    store: &dyn Links,
    metrics: &Metrics,
    history: &StoreEpoch,
    links: &[NewLink],
) -> Vec<Outcome> {
    metrics.insert_batches.increment(1);
    outcomes(store.insert(history, links).await, links.len(), |inserted| match inserted {
        Inserted::Stored(at) => Outcome::Stored(at),
        Inserted::Taken => Outcome::Taken,
    })
}

/// Inserts links of one history of the database, those of each bucket together, and returns the
/// outcome of each in the order of `links`.
pub(super) async fn insert_many(
    store: &dyn Links,
    metrics: &Metrics,
    history: &StoreEpoch,
    links: &[NewLink],
) -> Vec<Outcome> {
    let places = store.by_bucket(links);
    if places.len() == 1 {
        return insert(store, metrics, history, links).await;
    }
    let inserts = places.iter().map(async |places| {
        let links: Vec<NewLink> = places.iter().map(|place| links[*place].clone()).collect();
        insert(store, metrics, history, &links).await
    });
    let inserted = join_all(inserts).await;
    let mut outcomes: Vec<(usize, Outcome)> = places
        .into_iter()
        .zip(inserted)
        .flat_map(|(places, outcomes)| places.into_iter().zip(outcomes))
        .collect();
    outcomes.sort_unstable_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The outcomes of so many links that were inserted together.
fn outcomes<T>(inserted: Result<Vec<T>, InsertError>, links: usize, of: fn(T) -> Outcome) -> Vec<Outcome> {
    match inserted {
        Ok(inserted) => inserted.into_iter().map(of).collect(),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, links, "insert links");
            (0..links).map(|_| Outcome::from(&error)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time between two batches, after so many that waited this long.
    fn interval(batches: usize, wait: Duration) -> Duration {
        let mut pace = Pace::new(4);
        (0..batches).for_each(|_| pace.note(wait));
        pace.due() - pace.started
    }

    #[test]
    fn batches_are_staggered_by_a_share_of_their_wait_if_that_is_long() {
        let ms = Duration::from_millis;
        assert_eq!(interval(0, ms(0)), SLOW);
        assert_eq!(interval(1_000, ms(1) / 2), SLOW);
        let share = interval(1_000, ms(4));
        assert!(share > ms(1) - ms(1) / 100 && share <= ms(1), "{share:?}");
        let hanging = interval(1_000, ms(10_000));
        assert!(hanging > ms(4) && hanging <= ms(5), "{hanging:?}");
    }
}
