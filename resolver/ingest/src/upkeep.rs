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
/// Interval at which closed months are merged.
const MERGE: Duration = Duration::from_secs(3_600);
/// Time for deletions in one round.
const DELETIONS: Duration = Duration::from_secs(10);
/// Pause after a step that left more to do.
const BREATH: Duration = Duration::from_millis(50);

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
        if is_due(merged, MERGE) {
            merged = Some(Instant::now());
            while let Some(true) = log("merge counters of visits", store.merge().await) {
                sleep(BREATH).await;
            }
        }
        while let Some(true) = log("add visits to links", store.fold_link_visits().await) {
            sleep(BREATH).await;
        }
        while let Some(true) = log("tell webhooks of visits", store.pass_on_events().await) {
            sleep(BREATH).await;
        }
        while let Some(true) = log("count visits for changed tags", store.follow_tags().await) {
            sleep(BREATH).await;
        }
        // Not until nothing is left: deletions that go on must not hold up everything else.
        let until = Instant::now() + DELETIONS;
        while Instant::now() < until {
            if log("delete visits", store.delete_rows().await).is_none_or(|step| !step.has_more) {
                break;
            }
            sleep(BREATH).await;
        }
        sleep(FOLD).await;
    }
}

fn log<T>(what: &'static str, result: Result<T, VisitStoreError>) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(error = error as &dyn std::error::Error, "{what}")).ok()
}
