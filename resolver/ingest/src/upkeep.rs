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

/// For how many days visits are kept, today included.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Days of single visits.
    pub rows_days: i32,
    /// Days of counters; `None` for ever.
    pub counts_days: Option<i32>,
}

impl Retention {
    /// Returns the first day whose rows are kept.
    fn rows_from(self, today: Day) -> Day {
        today.minus(self.rows_days - 1)
    }

    /// Returns the first day whose counters are kept, unless all are. They go by whole months.
    fn counts_from(self, today: Day) -> Option<Day> {
        self.counts_days.map(|days| today.minus(days - 1).month().first_day())
    }
}

/// Looks after the store for as long as the process runs.
pub async fn run(
    store: Arc<dyn VisitStore>,
    retention: Retention,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) {
    let today = || Day::of(now().as_microsecond());
    tokio::join!(rebuild_indexes(&*store, retention, today), run_chores(&*store, retention, today));
}

/// Rebuilds indexes of closed days, each of which may take long.
async fn rebuild_indexes(store: &dyn VisitStore, retention: Retention, today: impl Fn() -> Day) {
    loop {
        sleep(KEEP).await;
        log("rebuild the index of a day of visits", store.rebuild_index(retention.rows_from(today())).await);
    }
}

async fn run_chores(store: &dyn VisitStore, retention: Retention, today: impl Fn() -> Day) {
    let (mut keep_at, mut merge_at, mut remove_at) = (Instant::now(), Instant::now(), Instant::now());
    loop {
        let today = today();
        if keep_at <= Instant::now() {
            keep_at = Instant::now() + KEEP;
            log("look after the days of visits", store.keep(retention.rows_from(today)).await);
        }
        if merge_at <= Instant::now() {
            merge_at = next(repeat("merge counters of visits", || store.merge()).await, MERGE);
        }
        if let Some(from) = retention.counts_from(today)
            && remove_at <= Instant::now()
        {
            let remove = || store.remove_old_counters(from);
            remove_at = next(repeat("remove old counters of visits", remove).await, KEEP);
        }
        repeat("add visits to links", || store.fold_link_visits()).await;
        repeat("tell webhooks of visits", || store.pass_on_events()).await;
        repeat("count visits for changed tags", || store.follow_tags()).await;
        repeat("delete visits", || async { Ok(store.delete_rows().await?.is_some()) }).await;
        sleep(FOLD).await;
    }
}

/// Returns when a chore is looked at again, with `pause` after its end.
fn next(remaining: Remaining, pause: Duration) -> Instant {
    let pause = match remaining {
        Remaining::Nothing => pause,
        Remaining::Held => RETRY,
        Remaining::Something => Duration::ZERO,
    };
    Instant::now() + pause
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

#[cfg(test)]
mod tests {
    use visits::Month;

    use super::*;

    #[test]
    fn counters_go_by_whole_months_and_outlive_the_rows() {
        let march = Month::from_stored(2_026 * 12 + 2).first_day();
        for (today, days, expected) in [
            (march, 1, march),
            (march, 2, march.minus(28)),
            (march.minus(-30), 31, march),
            (march.minus(-30), 32, march.minus(28)),
            (march, 366, march.minus(365)),
        ] {
            let retention = Retention { rows_days: days, counts_days: Some(days) };
            let from = retention.counts_from(today).unwrap();
            assert_eq!(from, expected, "{days} days before {today:?}");
            assert!(from <= retention.rows_from(today));
        }
        assert_eq!(Retention { rows_days: 90, counts_days: None }.counts_from(march), None);
    }
}
