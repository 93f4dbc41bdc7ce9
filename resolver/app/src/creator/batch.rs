//! Group commit: whatever has arrived while a batch was being written is the next one, which begins when that has ended, or beside it
//! when many wait or it is slow.

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

use crate::metrics::Metrics;

/// So many that wait are written beside the batch that is under way; fewer wait for it, and grow. Measured with `bench create` on 2026-11-21
/// and 22: without this 64 clients made 1.29 × pgbench's rate and 256 made 2.34, with one batch at a time 1.49 and 2.02.
const LARGE: usize = 100;

/// And so long after the last batch began, whatever waits is written beside it: a database whose disk is slow, or that is far away, takes
/// several in the time of one. By the same bench with a flush of 2 ms, 64 clients made 0.58 × pgbench's rate instead of 0.48, 256 made
/// 2.08 instead of 1.39, and nothing changed without it.
const PATIENCE: Duration = Duration::from_millis(1);

/// What became of one link of a batch.
pub(super) enum Outcome {
    Stored(Timestamp),
    Taken,
    /// Somebody has its code on another domain: the number stays without a row.
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
pub(super) struct Waiting {
    pub(super) link: NewLink,
    pub(super) history: Arc<StoreEpoch>,
    pub(super) deadline: Instant,
    pub(super) outcome: oneshot::Sender<Outcome>,
}

/// Writes batches until nobody can send any more. What has waited past its deadline is not sent at all: a
/// database that hangs must not keep a long queue waiting, batch after batch.
pub(super) async fn write_batches(
    store: Arc<dyn Links>,
    mut waiting: mpsc::Receiver<Waiting>,
    metrics: Arc<Metrics>,
) {
    let (mut batch, mut under_way) = (Vec::with_capacity(BATCH_MAX), FuturesUnordered::new());
    let lanes = store.insert_lanes().max(1);
    let mut is_slow = false;
    let mut patience = pin!(sleep(PATIENCE));
    loop {
        let free = lanes.saturating_sub(under_way.len());
        // While a batch is quick this is looked at when it has ended, and not with each arrival: to be woken up by each of them costs more
        // than it gains.
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

async fn write(store: &dyn Links, batch: Batch, metrics: &Metrics) {
    let inserted = insert(store, metrics, &batch.history, &batch.links).await;
    for (inserted, outcome) in inserted.into_iter().zip(batch.outcomes) {
        let _ = outcome.send(inserted);
    }
}

/// Links of one history of the database, and who waits for them.
struct Batch {
    history: Arc<StoreEpoch>,
    links: Vec<NewLink>,
    outcomes: Vec<oneshot::Sender<Outcome>>,
}

/// What is to be inserted: one batch, or two for a moment after the database has failed over.
fn sort(waiting: &mut Vec<Waiting>) -> Vec<Batch> {
    let (now, most) = (Instant::now(), waiting.len());
    let mut batches: Vec<Batch> = Vec::with_capacity(1);
    for Waiting { link, history, deadline, outcome } in waiting.drain(..) {
        if deadline <= now {
            // A create holds its receiver until it is answered, so there is nobody to miss this.
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

/// Inserts links of one history of the database, at most [`BATCH_MAX`]; the outcome of each, in their order.
pub(super) async fn insert(
    store: &dyn Links,
    metrics: &Metrics,
    history: &StoreEpoch,
    links: &[NewLink],
) -> Vec<Outcome> {
    metrics.insert_batches.increment(1);
    match store.insert(history, links).await {
        Ok(inserted) => inserted
            .into_iter()
            .map(|inserted| match inserted {
                Inserted::Stored(at) => Outcome::Stored(at),
                Inserted::Taken => Outcome::Taken,
            })
            .collect(),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, links = links.len(), "insert links");
            links.iter().map(|_| Outcome::from(&error)).collect()
        }
    }
}
