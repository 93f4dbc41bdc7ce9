//! The deadline of calls.

use std::time::Duration;

use crate::{Result, StoreError};

/// Deadline of one attempt at a statement or transaction, and of a wait for a connection.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);

/// Applies [`DEADLINE`] to a call.
pub(super) async fn within<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(DEADLINE, call).await.unwrap_or(Err(StoreError::TimedOut))
}
