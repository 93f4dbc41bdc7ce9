//! Limits on the concurrent database calls of each API key, so that connections stay free for
//! others.
//!
//! Calls beyond the limit wait in order, because Shlink's web client requests several lists at
//! once.

use std::{sync::Arc, time::Duration};

use links::api_key::ApiKeyId;
use moka::sync::Cache;
use store::postgres::ConnectionBudget;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long a call waits for its permit.
const WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of keys whose permits are kept.
const KEPT: u64 = 10_000;
/// How long a key's permits are kept after their last use: longer than any is awaited or held.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The error if a key's permit did not become free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API key has too many calls under way")]
pub struct PermitTimeout;

/// A fixed number of permits for each key.
#[derive(Debug)]
pub struct KeyPermits {
    of_key: usize,
    by_key: Cache<ApiKeyId, Arc<Semaphore>>,
}

impl KeyPermits {
    /// Creates limits with `of_key` permits for each key.
    #[must_use]
    pub fn new(of_key: usize) -> Self {
        Self { of_key, by_key: Cache::builder().max_capacity(KEPT).time_to_idle(KEPT_FOR).build() }
    }

    /// Waits for a permit, which is given back when it is dropped.
    ///
    /// # Errors
    /// Returns [`PermitTimeout`] if no permit became free in time.
    pub async fn take(&self, key: ApiKeyId) -> Result<OwnedSemaphorePermit, PermitTimeout> {
        let turns = self.by_key.get_with(key, || Arc::new(Semaphore::new(self.of_key)));
        timeout(WITHIN, turns.acquire_owned()).await.ok().and_then(Result::ok).ok_or(PermitTimeout)
    }
}

/// The permits of each key, by kind of database call.
#[derive(Debug)]
pub struct DatabasePermits {
    queries: KeyPermits,
    writes: Arc<KeyPermits>,
}

impl DatabasePermits {
    /// Gives a key half of the connections for queries that may take long, such as lists, and half
    /// of those for all other calls. Changes of one link wait for each other on the latter.
    #[must_use]
    pub fn of(budget: ConnectionBudget) -> Self {
        let half = |connections: u32| usize::try_from(connections / 2).unwrap_or(usize::MAX).max(1);
        let writes = Arc::new(KeyPermits::new(half(budget.general)));
        Self { queries: KeyPermits::new(half(budget.lists)), writes }
    }

    /// Waits for a permit for a query that may take the database long.
    ///
    /// # Errors
    /// Returns [`PermitTimeout`] if the key's earlier queries took too long.
    pub async fn query(&self, key: ApiKeyId) -> Result<OwnedSemaphorePermit, PermitTimeout> {
        self.queries.take(key).await
    }

    /// Waits for a permit for a brief statement: a change of a link, tag, domain or rule, or a read
    /// of a link's data outside its row. Creates that are transactions of their own need these
    /// permits too; plain creates have their own connections.
    ///
    /// # Errors
    /// Returns [`PermitTimeout`] if the key's earlier statements took too long.
    pub async fn write(&self, key: ApiKeyId) -> Result<OwnedSemaphorePermit, PermitTimeout> {
        self.writes.take(key).await
    }

    /// Returns the permits that creates and changes share.
    #[must_use]
    pub fn writes(&self) -> Arc<KeyPermits> {
        Arc::clone(&self.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_for_its_turns_and_others_have_theirs() {
        let turns = KeyPermits::new(2);
        let key = |number| ApiKeyId(number);
        let mut taken = vec![turns.take(key(1)).await.unwrap(), turns.take(key(1)).await.unwrap()];
        assert_eq!(turns.take(key(1)).await.err(), Some(PermitTimeout));
        assert!(turns.take(key(2)).await.is_ok());
        taken.pop();
        assert!(turns.take(key(1)).await.is_ok());
    }
}
