//! Chores that one process at a time does for all, in steps (`store::Sweep`).

use std::time::Duration;

use store::StoreError;

/// How long the process that does a chore may be silent before another one takes over.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(60);
/// Pause between two steps, because others use the database too.
const BREATH: Duration = Duration::from_millis(50);
/// Pause after an error.
const RETRY: Duration = Duration::from_secs(30);

/// Returns the pause after a step, which has told whether there may be more to do. A process that
/// has nothing to do, or not its turn, asks again after `asked_every`.
pub(crate) fn pause(what: &'static str, asked_every: Duration, step: Result<bool, StoreError>) -> Duration {
    match step {
        Ok(true) => BREATH,
        Ok(false) => asked_every,
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "{what}");
            RETRY
        }
    }
}
