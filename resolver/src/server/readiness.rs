//! When this process is ready for the first time.
//!
//! A process that creates links waits for numbers. Otherwise a rollout during an outage of the
//! issuers would replace processes that have numbers left by ones that have none. The wait has an
//! end, because neither redirects nor reads and edits of links need numbers, and a process that was
//! restarted in the outage should not be missed for them.
//!
//! Rejected: readiness that follows the issuer later as well. An outage would take every process
//! out of service at once, and with them the redirects and the numbers in hand.

use std::{cmp, sync::Arc, time::Duration};

use supply::Minting;
use tokio::time::{Instant, timeout_at};

use super::warm_start::WarmStart;
use crate::config::Role;

/// The longest wait of a process that serves visitors too. Where all of them have started in an
/// outage, no link redirects for so long.
const WITH_VISITORS: Duration = Duration::from_secs(120);

/// Returns how long a process with this `--start-deadline` waits, from its start on.
pub(super) fn longest_wait(role: Role, start_deadline: Duration) -> Duration {
    if role.serves_visitors() { cmp::min(start_deadline, WITH_VISITORS) } else { start_deadline }
}

/// Waits until numbers of the default keyspace are in hand or used up, or until `deadline`.
pub(super) async fn wait_for_numbers(minting: Option<Arc<Minting>>, deadline: Instant) {
    let Some(minting) = minting else { return };
    if timeout_at(deadline, minting.stocked()).await.is_err() {
        tracing::warn!(
            namespace = %minting.namespace,
            "ready without numbers, which the issuers have not given in time: creates wait for them"
        );
    }
}

/// Waits for the numbers, and for the links that are cached before, if the operator wants that.
pub(super) async fn with_links(numbers: impl Future<Output = ()>, warm: Option<Arc<WarmStart>>) {
    let links = async {
        if let Some(warm) = warm {
            warm.load().await;
        }
    };
    tokio::join!(numbers, links);
}
