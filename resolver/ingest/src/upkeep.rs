//! Upkeep of the store of visits: every process does it, and the store lets one at a time.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use visit_store::{Remaining, VisitStore, VisitStoreError};
use visits::Day;

/// Interval at which visits by link are added to the links.
const FOLD: Duration = Duration::from_secs(2);
/// Interval at which partitions, their space and retention are looked after.
const KEEP: Duration = Duration::from_secs(1_800);
const MERGE: Duration = Duration::from_secs(3_600);
/// Time after which a step is tried again that failed or could not have its turn.
const RETRY: Duration = Duration::from_secs(60);
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
    tokio::join!(pack(&*store), run_chores(&*store, keep_days, now));
}

/// Takes unused space from closed days, of which each may take long.
async fn pack(store: &dyn VisitStore) {
    loop {
        sleep(KEEP).await;
        log("pack the rows of a day", store.pack().await);
    }
}

async fn run_chores(store: &dyn VisitStore, keep_days: i32, now: impl Fn() -> Timestamp) {
    let (mut keep_at, mut merge_at) = (Instant::now(), Instant::now());
    loop {
        if keep_at <= Instant::now() {
            keep_at = Instant::now() + KEEP;
            // Rows of a day are kept until `keep_days` days after it.
            let rows_from = Day::of(now().as_microsecond()).minus(keep_days - 1);
            log("look after the days of visits", store.keep(rows_from).await);
        }
        if merge_at <= Instant::now() {
            merge_at = match repeat("merge counters of visits", || store.merge()).await {
                Remaining::Nothing => Instant::now() + MERGE,
                Remaining::Held => Instant::now() + RETRY,
                Remaining::Something => Instant::now(),
            };
        }
        repeat("add visits to links", || store.fold_link_visits()).await;
        repeat("tell webhooks of visits", || store.pass_on_events()).await;
        repeat("count visits for changed tags", || store.follow_tags()).await;
        repeat("delete visits", || async { Ok(store.delete_rows().await?.is_some()) }).await;
        sleep(FOLD).await;
    }
}

/// Repeats the steps of a chore for as long as they leave more to do, with pauses in proportion.
async fn repeat<F: Future<Output = Result<impl Into<Remaining>, VisitStoreError>>>(
    what: &'static str,
    step: impl Fn() -> F,
) -> Remaining {
    let began = Instant::now();
    while began.elapsed() < CHORE {
        let at = Instant::now();
        match log(what, step().await).map(Into::into) {
            Some(Remaining::Something) => sleep((at.elapsed() * REST).clamp(BREATH, CHORE)).await,
            Some(remaining) => return remaining,
            None => return Remaining::Held,
        }
    }
    Remaining::Something
}

fn log<T>(what: &'static str, result: Result<T, VisitStoreError>) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(error = error as &dyn std::error::Error, "{what}")).ok()
}
