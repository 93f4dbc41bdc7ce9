//! How this process finds out that the database was restored from an older copy.
//!
//! 1. After each answer of the ledger to a registration or a beat, the holder raises the database's
//!    mark, and reports it with its next beat. A database below a reported mark is an older copy.
//! 2. Reported marks are kept by the ledger, by the witness file if there is one, and by this
//!    process.
//! 3. The mark is raised only if the database server has not restarted since the ledger was asked:
//!    a database is restored while its server is down. So the first raise after a restore compares
//!    with every mark that was reported before it, and cannot hide the difference.
//! 4. A database that is below begins a new history. Blocks of the old one are burned, because
//!    their codes may be public.
//! 5. A restart of the server triggers a beat, because cold copies are made while it is down. Between
//!    the restart and the first comparison nothing is stored under a number: the database may be an
//!    older copy, and lack links whose numbers somebody still has in hand, or has found unused there.
//!
//! Not noticed: a copy made beside a running server and restored before the beat that follows it.

use std::sync::{
    Arc,
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
    /// The highest mark that is known. The database had committed it, so it may be reported.
    pub(super) fn known(&self) -> Mark {
        Mark(self.told.load(Ordering::Acquire))
    }

    /// Raises the database's mark above every mark that is known. False when the server has
    /// restarted since `seen`: the ledger has to be asked again.
    pub(super) async fn advance(
        &self,
        store: &Arc<dyn LinkStore>,
        told: Mark,
        seen: Seen,
    ) -> Result<bool, StoreError> {
        self.hear(told);
        let how = Comparison { raises: true, since: seen.0 };
        Ok(self.learn(store.advance(self.least(), how).await?))
    }

    /// What the database has to have come to.
    fn least(&self) -> Mark {
        if guard::is_on(Guard::Mark) { self.known() } else { Mark(0) }
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
