//! Notes in the background which links lead to a long URL. What is noted, and why not by creates, is said in `store/src/sql/long_urls.rs`.
//!
//! One resolver at a time does it, in steps of 500 links that are each a transaction, and another one goes on where it was when it dies. It
//! rests many times as long as it works, so that it takes a small share of a busy database, and catches up when there is less to do.

use std::{sync::Arc, time::Duration};

use store::{Catalog, IndexStep, Indexed};
use tokio::time::{Instant, sleep};

/// How long the resolver that does it may be silent before another one does it.
const HELD_FOR: Duration = Duration::from_secs(15);
/// How long it rests, for each moment of work. By `bench create` of 2026-11-23, 20 took 3 % of the creates.
const REST: u32 = 50;
/// The shortest and the longest rest between two steps.
const REST_MIN: Duration = Duration::from_millis(50);
const REST_MAX: Duration = Duration::from_secs(5);
/// How often it looks for new links.
const IDLE: Duration = Duration::from_secs(2);
/// How long it waits when another resolver does it, or when the database does not answer.
const NOT_OURS: Duration = Duration::from_secs(10);

/// The task that keeps the index of long URLs.
pub struct UrlIndexer {
    /// The database.
    pub catalog: Arc<dyn Catalog>,
    /// A name that no other process has.
    pub holder: String,
}

impl UrlIndexer {
    /// Does it whenever it is this process's turn.
    pub async fn run(self) {
        let step = IndexStep { holder: self.holder, held_for: HELD_FOR };
        loop {
            let begun = Instant::now();
            let rest = match self.catalog.index_long_urls(&step).await {
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
}
