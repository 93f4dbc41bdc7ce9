//! Detection of a database that was restored from an older copy.
//!
//! 1. After each answer of the ledger to a registration or a beat, the holder raises the database's
//!    mark, and reports it with its next beat. A database below a reported mark is an older copy.
//! 2. Reported marks are kept by the ledger, by the witness file if there is one, and by this
//!    process.
//! 3. The mark is raised only if the database server has not restarted since the ledger was asked:
//!    a database is restored while its server is down. So the first raise after a restore compares
//!    with every mark that was reported before it, and cannot hide the difference.
//! 4. A database below a reported mark begins a new history. Blocks of the old one are burned,
//!    because their codes may be public.
//! 5. A restart of the server triggers a beat, because cold copies are made while it is down.
//!    Between the restart and the first comparison nothing is stored under a number. The database
//!    may be an older copy, which lacks links whose numbers another process still has in hand, or
//!    has found unused there.
//!
//! Not detected: a copy made beside a running server and restored before the beat that follows it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use numbers::Mark;
use store::{Advanced, Comparison, Register, StoreError};
use tokio::time::sleep;

use crate::safety_rule::{SafetyRule, SafetyRules};

/// The pause before a database that did not answer is asked again.
const RETRY: Duration = Duration::from_millis(100);

/// The highest mark known to this process.
#[derive(Debug)]
pub(super) struct History {
    told: AtomicU64,
    rules: SafetyRules,
}

/// The start time of the database server, as last seen before the ledger was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen(Option<Timestamp>);

impl Seen {
    pub(super) fn now(register: &Arc<dyn Register>) -> Self {
        Self(register.server_start().and_then(|start| *start.borrow()))
    }
}

impl History {
    pub(super) fn new(rules: SafetyRules) -> Self {
        Self { told: AtomicU64::new(0), rules }
    }

    /// Returns the highest known mark. The database had committed it, so it may be reported.
    pub(super) fn known(&self) -> Mark {
        Mark(self.told.load(Ordering::Acquire))
    }

    /// Raises the database's mark above every known mark. Returns false if the server has restarted
    /// since `seen`: the ledger has to be asked again.
    pub(super) async fn advance(
        &self,
        register: &Arc<dyn Register>,
        told: Mark,
        seen: Seen,
    ) -> Result<bool, StoreError> {
        self.told.fetch_max(told.0, Ordering::AcqRel);
        let how = Comparison { raises: true, since: seen.0 };
        let least = if self.rules.keep(SafetyRule::Mark) { self.known() } else { Mark(0) };
        match register.advance(least, how).await? {
            Advanced::Restarted => Ok(false),
            Advanced::To(mark) | Advanced::Began(mark) => {
                self.told.fetch_max(mark.0, Ordering::AcqRel);
                Ok(true)
            }
        }
    }

    /// Raises the mark like [`History::advance`], and repeats the call until the database answers.
    /// It sends no further beat, which would cost the issuer a commit each time. The caller bounds
    /// the wait.
    pub(super) async fn advance_soon(&self, register: &Arc<dyn Register>, told: Mark, seen: Seen) -> bool {
        loop {
            match self.advance(register, told, seen).await {
                Ok(is_raised) => return is_raised,
                Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "raise the mark"),
            }
            sleep(RETRY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rusqlite::Connection;
    use tokio::time::timeout;

    use super::*;
    use store::{Store as _, sqlite::SqliteStore};

    #[tokio::test(start_paused = true)]
    async fn a_comparison_that_fails_is_asked_again_without_another_beat() {
        // The database has no tables yet, so the comparison fails.
        let connection = Arc::new(Mutex::new(Connection::open_in_memory().unwrap()));
        let store = Arc::new(SqliteStore::here(&connection));
        let register: Arc<dyn Register> = store.clone();
        let history = History::new(SafetyRules::default());
        assert!(history.advance(&register, Mark(7), Seen::default()).await.is_err());
        let starts = async {
            sleep(Duration::from_secs(1)).await;
            store.migrate().await.unwrap();
            let row = "INSERT INTO deployment (one, code_key_fingerprint) VALUES (1, 'any')";
            connection.lock().unwrap().execute(row, []).unwrap();
        };
        let patience = Duration::from_secs(3);
        let raising = timeout(patience, history.advance_soon(&register, Mark(7), Seen::default()));
        let (is_raised, ()) = tokio::join!(raising, starts);
        assert!(is_raised == Ok(true) && history.known() > Mark(7), "{:?}", history.known());
    }
}
