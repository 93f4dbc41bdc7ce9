//! Permits for what a key may do at a time. Callers beyond the limit wait in order, because
//! Shlink's web client requests several lists at once.

use std::{hash::Hash, sync::Arc, time::Duration};

use moka::sync::Cache;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

const WITHIN: Duration = Duration::from_secs(5);
const KEPT: u64 = 10_000;
/// How long a key's permits are kept after their last use: longer than any is awaited or held.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The error if a key's permit did not become free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API key has too many calls in progress")]
pub struct PermitTimeout;

/// A fixed number of permits for each key.
#[derive(Debug)]
pub struct KeyPermits<K: Hash + Eq + Send + Sync + 'static> {
    of_key: usize,
    by_key: Cache<K, Arc<Semaphore>>,
}

impl<K: Hash + Eq + Send + Sync + 'static> KeyPermits<K> {
    /// Creates limits with `of_key` permits for each key.
    pub fn new(of_key: usize) -> Self {
        Self { of_key, by_key: Cache::builder().max_capacity(KEPT).time_to_idle(KEPT_FOR).build() }
    }

    /// Waits for a permit, which is given back when it is dropped.
    pub async fn take(&self, key: K) -> Result<OwnedSemaphorePermit, PermitTimeout> {
        let permits = self.by_key.get_with(key, || Arc::new(Semaphore::new(self.of_key)));
        timeout(WITHIN, permits.acquire_owned()).await.ok().and_then(Result::ok).ok_or(PermitTimeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_for_its_permits_and_others_have_theirs() {
        let permits = KeyPermits::new(2);
        let mut taken = vec![permits.take(1).await.unwrap(), permits.take(1).await.unwrap()];
        assert_eq!(permits.take(1).await.err(), Some(PermitTimeout));
        assert!(permits.take(2).await.is_ok());
        taken.pop();
        assert!(permits.take(1).await.is_ok());
    }
}
