//! Upkeep of the store of visits: every process does it, and the store lets one at a time.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use visit_store::{VisitStore, VisitStoreError};
use visits::Day;

/// Interval at which visits by link are added to the links.
const FOLD: Duration = Duration::from_secs(2);
/// Interval at which partitions and retention are looked after.
const KEEP: Duration = Duration::from_secs(1_800);
const MERGE: Duration = Duration::from_secs(3_600);
/// Time for a chore in one round: one that goes on must not hold up the others.
const CHORE: Duration = Duration::from_secs(10);
/// Least pause after a step that left more to do.
const BREATH: Duration = Duration::from_millis(50);
/// Length of that pause in lengths of the step. Batches of visits may have waited for it.
const REST: u32 = 3;

/// Looks after the store for as long as the process runs.
pub async fn run(
    store: Arc<dyn VisitStore>,
    keep_days: i32,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) {
    let (mut kept, mut merged): (Option<Instant>, Option<Instant>) = (None, None);
    let is_due = |last: Option<Instant>, every| last.is_none_or(|last| last.elapsed() >= every);
    loop {
        if is_due(kept, KEEP) {
            kept = Some(Instant::now());
            // Rows of a day are kept until `keep_days` days after it.
            let rows_from = Day::of(now().as_microsecond()).minus(keep_days - 1);
            log("look after the days of visits", store.keep(rows_from).await);
        }
        if is_due(merged, MERGE) && repeat("merge counters of visits", || store.merge()).await {
            merged = Some(Instant::now());
        }
        repeat("add visits to links", || store.fold_link_visits()).await;
        repeat("tell webhooks of visits", || store.pass_on_events()).await;
        repeat("count visits for changed tags", || store.follow_tags()).await;
        repeat("delete visits", || async { Ok(store.delete_rows().await?.is_some()) }).await;
        sleep(FOLD).await;
    }
}

/// Repeats the steps of a chore for as long as they leave more to do, with pauses in proportion.
/// Returns whether nothing is left, or the store refuses; otherwise the next round goes on.
async fn repeat<F: Future<Output = Result<bool, VisitStoreError>>>(
    what: &'static str,
    step: impl Fn() -> F,
) -> bool {
    let began = Instant::now();
    while began.elapsed() < CHORE {
        let at = Instant::now();
        if log(what, step().await) != Some(true) {
            return true;
        }
        sleep((at.elapsed() * REST).max(BREATH)).await;
    }
    false
}

fn log<T>(what: &'static str, result: Result<T, VisitStoreError>) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(error = error as &dyn std::error::Error, "{what}")).ok()
}
