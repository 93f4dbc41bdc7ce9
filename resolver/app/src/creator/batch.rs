//! Group commit: the links that arrive while a batch is being written form the next batch. It
//! starts when the current one has ended, or beside it if many links wait or the current one is
//! slow.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use jiff::Timestamp;
use links::NewLink;
use numbers::StoreEpoch;
use store::{BATCH_MAX, InsertError, Inserted, Links, StoreError};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use lookup::metrics::Metrics;

/// If this many links wait, they are written beside the batch in progress; fewer links wait for its
/// end, and accumulate. Measured with `bench create` on 2026-11-21 and 22: without this 64 clients
/// made 1.29 × pgbench's rate and 256 made 2.34, with one batch at a time 1.49 and 2.02.
const LARGE: usize = 100;

/// This long after the last batch started, any waiting links are written beside it. A database with
/// a slow disk, or one that is far away, takes several batches in the time of one. By the same
/// bench with a flush of 2 ms, 64 clients made 0.58 × pgbench's rate instead of 0.48, and 256 made
/// 2.08 instead of 1.39. Without that flush delay nothing changed.
const PATIENCE: Duration = Duration::from_millis(1);

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
    let mut is_slow = false;
    let mut patience = pin!(sleep(PATIENCE));
    loop {
        let free = lanes.saturating_sub(under_way.len());
        // While a batch is quick, the queue is examined when the batch has ended and not at each
        // arrival: waking up for each of them costs more than it gains.
        let is_worth_it = under_way.is_empty() || (free > 0 && (is_slow || waiting.len() >= LARGE));
        let share = (waiting.len() / free.max(1)).clamp(LARGE, BATCH_MAX);
        tokio::select! {
            arrived = waiting.recv_many(&mut batch, share), if is_worth_it => {
                if arrived == 0 {
                    break;
                }
                under_way.extend(sort(&mut batch).into_iter().map(|batch| write(&*store, batch, &metrics)));
                is_slow = false;
                patience.as_mut().reset(Instant::now() + PATIENCE);
            }
            Some(()) = under_way.next() => {}
            () = &mut patience, if !is_slow && free > 0 && !under_way.is_empty() => is_slow = true,
        }
    }
    under_way.collect::<()>().await;
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
        for Batch { links, outcomes, .. } in sort(&mut batch) {
            metrics.insert_batches.increment(1);
            let stored = store.insert_slugs(&links).await;
            let of = |stored: Option<Timestamp>| stored.map_or(Outcome::Taken, Outcome::Stored);
            tell(outcomes, self::outcomes(stored, links.len(), of));
        }
    }
}

async fn write(store: &dyn Links, batch: Batch<Arc<StoreEpoch>>, metrics: &Metrics) {
    tell(batch.outcomes, insert(store, metrics, &batch.history, &batch.links).await);
}

fn tell(waiting: Vec<oneshot::Sender<Outcome>>, outcomes: Vec<Outcome>) {
    for (waiting, outcome) in waiting.into_iter().zip(outcomes) {
        let _ = waiting.send(outcome);
    }
}

/// Links of one history of the database, with the channels that wait for their outcomes.
struct Batch<H> {
    history: H,
    links: Vec<NewLink>,
    outcomes: Vec<oneshot::Sender<Outcome>>,
}

/// Groups waiting links by the database's history, and rejects those past their deadline. There is
/// one group, or two for a moment after the database has failed over.
fn sort<H: PartialEq>(waiting: &mut Vec<Waiting<H>>) -> Vec<Batch<H>> {
    let (now, most) = (Instant::now(), waiting.len());
    let mut batches: Vec<Batch<H>> = Vec::with_capacity(1);
    for Waiting { link, history, deadline, outcome } in waiting.drain(..) {
        if deadline <= now {
            // The send cannot fail: a create holds its receiver until it is answered.
            let _ = outcome.send(Outcome::Failed);
            continue;
        }
        let known = batches.iter().position(|batch| batch.history == history);
        let index = known.unwrap_or_else(|| {
            let (links, outcomes) = (Vec::with_capacity(most), Vec::with_capacity(most));
            batches.push(Batch { history, links, outcomes });
            batches.len() - 1
        });
        batches[index].links.push(link);
        batches[index].outcomes.push(outcome);
    }
    batches
}

/// Inserts at most [`BATCH_MAX`] links of one history of the database, and returns the outcome of
/// each in the order of `links`.
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
