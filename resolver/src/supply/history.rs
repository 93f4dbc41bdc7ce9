//! What this process knows of how far the database has come, and how it finds out that the database was put back from an older copy.
//!
//! 1. A holder raises the database's mark after each answer of the ledger to its registration and its beats, and tells the ledger with the next
//!    beat. So the database is never below a mark that was told, unless links were lost, with that mark, since the copy.
//! 2. The marks that were told are kept by the ledger, by the witness file if there is one, and by this process.
//! 3. The mark is raised only when the database's server was not started since the ledger was asked: a database is put back while its server
//!    stands still. So the first raise after that compares with everything that was told before, and cannot hide the difference.
//! 4. A database that is below begins a new history: what was in anybody's hands is burned, for its codes may be known to people.
//! 5. The mark is also compared before it is asked what a block has left, with an answer of the ledger that came since the server was started. And a beat follows at once when the server was started, because a
//!    copy is taken while it stands still, too.
//!
//! What is left: a copy taken beside a running server, and put back before the beat that follows it.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use issuer::tokens::Mark;
use jiff::Timestamp;

use crate::{
    guard::{self, Guard},
    store::{Advanced, Comparison, LinkStore, StoreError},
};

/// The marks that this process was told, as one.
#[derive(Debug, Default)]
pub(super) struct History {
    told: AtomicU64,
    /// When the server was seen before the ledger's latest answer.
    answered: Mutex<Option<Seen>>,
}

/// When the database's server was started, as far as it was seen before the ledger was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen(Option<Timestamp>);

impl Seen {
    pub(super) fn now(store: &Arc<dyn LinkStore>) -> Self {
        Self(store.server_start().and_then(|start| *start.borrow()))
    }
}

impl History {
    /// The highest mark that is known. The database had committed it, so anybody may be told.
    pub(super) fn known(&self) -> Mark {
        Mark(self.told.load(Ordering::Acquire))
    }

    /// Raises the mark, with what the ledger has answered since the server was seen; whether it was, or the ledger has to be asked again.
    pub(super) async fn advance(
        &self,
        store: &Arc<dyn LinkStore>,
        told: Mark,
        seen: Seen,
    ) -> Result<bool, StoreError> {
        self.hear(told);
        *self.answered() = Some(seen);
        let how = Comparison { raises: true, since: seen.0 };
        Ok(self.learn(store.advance(self.least(), how).await?))
    }

    /// Compares the mark with what is known; whether enough is known for that, or the ledger has to be asked first.
    pub(super) async fn compare(&self, store: &Arc<dyn LinkStore>) -> Result<bool, StoreError> {
        let Some(seen) = *self.answered() else { return Ok(false) };
        let how = Comparison { raises: false, since: seen.0 };
        Ok(self.learn(store.advance(self.least(), how).await?))
    }

    /// What the database has to have come to.
    fn least(&self) -> Mark {
        if guard::is_on(Guard::Mark) { self.known() } else { Mark(0) }
    }

    fn answered(&self) -> MutexGuard<'_, Option<Seen>> {
        self.answered.lock().expect("no code panics while it holds this lock")
    }

    fn hear(&self, mark: Mark) {
        self.told.fetch_max(mark.0, Ordering::AcqRel);
    }

    fn learn(&self, advanced: Advanced) -> bool {
        match advanced {
            Advanced::Restarted => false,
            Advanced::To(mark) | Advanced::Began(mark) => {
                self.hear(mark);
                true
            }
        }
    }
}
