//! Background task that maintains the index of long URLs. `store/src/sql/long_urls.rs` describes
//! the index, and why creates do not write it.
//!
//! One resolver at a time runs it, in steps of 500 links that are each a transaction. If that
//! resolver dies, another one continues where it stopped. The task rests many times as long as it
//! works, so that it takes a small share of a busy database, and catches up when there is less to
//! do.

use std::{sync::Arc, time::Duration};

use store::{Catalog, Indexed};
use tokio::time::{Instant, sleep};

/// How long the running resolver may be silent before another one takes over.
const HELD_FOR: Duration = Duration::from_secs(15);
/// Length of a rest in multiples of the preceding step. By `bench create` of 2026-11-23, a value of
/// 20 took 3 % of the creates.
const REST: u32 = 50;
/// The shortest and the longest rest between two steps.
const REST_MIN: Duration = Duration::from_millis(50);
const REST_MAX: Duration = Duration::from_secs(5);
/// How often the task looks for new links.
const IDLE: Duration = Duration::from_secs(2);
/// Pause when another resolver runs the task, or when the database does not answer.
const NOT_OURS: Duration = Duration::from_secs(10);

/// Maintains the index of long URLs whenever it is this process's turn. No other process has the
/// name `holder`.
pub async fn index_long_urls(catalog: Arc<dyn Catalog>, holder: String) {
    loop {
        let begun = Instant::now();
        let rest = match catalog.index_long_urls(&holder, HELD_FOR).await {
            Ok(Indexed::Some(_)) => (begun.elapsed() * REST).clamp(REST_MIN, REST_MAX),
            Ok(Indexed::Done) => IDLE,
            Ok(Indexed::NotOurs) => NOT_OURS,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "index long URLs");
                NOT_OURS
            }
        };
        sleep(rest).await;
    }
}
