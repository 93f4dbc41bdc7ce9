//! How many clusters run at once in this process.
//!
//! A cluster is up to ten processes that sync to disk. Too many side by side make every one of them slow, and a slow
//! leader loses its lease: tests would fail for a reason that is not theirs. The runner's number of threads is no
//! substitute, since small tests may well run beside a cluster.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Two cores carry two small clusters.
const CLUSTERS_MAX: u32 = 2;

/// Shared by all tests' runtimes: tokio's semaphore belongs to none.
static SLOTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(CLUSTERS_MAX as usize)));

/// The right to run a cluster, until it is dropped.
pub(crate) type Slot = OwnedSemaphorePermit;

/// How much of the machine a cluster needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Another cluster may run beside it.
    One,
    /// No other cluster may.
    All,
}

/// Waits until there is room. Who waits longest comes first, so a cluster that wants to be alone is not starved.
pub(crate) async fn take(share: Share) -> Slot {
    let slots = match share {
        Share::One => 1,
        Share::All => CLUSTERS_MAX,
    };
    Arc::clone(&SLOTS).acquire_many_owned(slots).await.expect("the semaphore is never closed")
}
