//! A limit on the clusters that run concurrently in this process.
//!
//! A cluster is up to ten processes that sync to disk. Too many at once slow every one of them
//! down, and a slow leader loses its lease, so tests would fail for no fault of their own. The
//! runner's number of threads is no substitute, since small tests may well run beside a cluster.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest number of concurrent clusters: two cores carry two small clusters.
const CLUSTERS_MAX: u32 = 2;

/// The semaphore of all tests' runtimes. tokio's semaphore is not bound to a runtime.
static SLOTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(CLUSTERS_MAX as usize)));

/// The permit to run a cluster, held until it is dropped.
pub(crate) type Slot = OwnedSemaphorePermit;

/// The share of the machine that a cluster needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Another cluster may run concurrently.
    One,
    /// No other cluster may run concurrently.
    All,
}

/// Waits for a permit. The semaphore is fair (first come, first served), so a cluster that runs
/// alone is not starved.
pub(crate) async fn take(share: Share) -> Slot {
    let slots = match share {
        Share::One => 1,
        Share::All => CLUSTERS_MAX,
    };
    Arc::clone(&SLOTS).acquire_many_owned(slots).await.expect("the semaphore is never closed")
}
