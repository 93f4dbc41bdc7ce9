//! Background tasks that maintain the indexes of links which creates do not write.
//! `store/src/sql/link_index.rs` describes them.
//!
//! One resolver at a time maintains an index, in steps of 500 links that are each a transaction. If
//! that resolver dies, another one continues where it stopped. A task rests many times as long as
//! it works, so that it takes a small share of a busy database, and catches up when there is less
//! to do.

use std::{sync::Arc, time::Duration};

use store::{Catalog, Indexed, LinkIndex};
use tokio::time::{Instant, sleep};

/// How long the running resolver may be silent before another one takes over.
const HELD_FOR: Duration = Duration::from_secs(15);
/// Length of a rest in multiples of the preceding step. By `bench create` of 2026-11-23, a value of
/// 20 took 3 % of the creates.
const REST: u32 = 50;
/// The same once so many steps have found enough to do: who looks something up reads what is not
/// indexed yet.
const REST_BEHIND: u32 = 20;
const STEPS_BEHIND: u32 = 40;
/// The shortest and the longest rest between two steps.
const REST_MIN: Duration = Duration::from_millis(50);
const REST_MAX: Duration = Duration::from_secs(5);
/// How often the task looks for new links.
const IDLE: Duration = Duration::from_secs(2);
/// Pause when another resolver runs the task, or when the database does not answer.
const NOT_OURS: Duration = Duration::from_secs(10);

/// Maintains an index whenever it is this process's turn. No other process has the name `holder`.
pub async fn index_links(catalog: Arc<dyn Catalog>, index: LinkIndex, holder: String) {
    let mut steps = 0_u32;
    loop {
        let begun = Instant::now();
        let rest = match catalog.index_links(index, &holder, HELD_FOR).await {
            Ok(Indexed::Some(_)) => {
                steps = steps.saturating_add(1);
                let rest = if steps > STEPS_BEHIND { REST_BEHIND } else { REST };
                (begun.elapsed() * rest).clamp(REST_MIN, REST_MAX)
            }
            Ok(Indexed::Done) => {
                steps = 0;
                IDLE
            }
            Ok(Indexed::NotOurs) => NOT_OURS,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, ?index, "index links");
                NOT_OURS
            }
        };
        sleep(rest).await;
    }
}
