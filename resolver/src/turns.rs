//! Turns of each key at connections to the database: some stay free for others, whatever one key asks for.
//!
//! They are waited for in order, because Shlink's web client asks for several lists at once.

use std::{sync::Arc, time::Duration};

use links::api_key::ApiKeyId;
use moka::sync::Cache;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long one waits for its turn.
const WITHIN: Duration = Duration::from_secs(5);
/// Keys whose turns are kept, and for how long after the last: longer than any is waited for or taken.
const KEPT: u64 = 10_000;
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The turn of a key did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key has as much under way as it may")]
pub struct NoTurn;

/// So many turns of each key.
#[derive(Debug)]
pub struct Turns {
    of_key: usize,
    by_key: Cache<ApiKeyId, Arc<Semaphore>>,
}

impl Turns {
    /// Every key has so many at a time.
    #[must_use]
    pub fn new(of_key: usize) -> Self {
        Self { of_key, by_key: Cache::builder().max_capacity(KEPT).time_to_idle(KEPT_FOR).build() }
    }

    /// A turn, which ends when it is dropped.
    ///
    /// # Errors
    /// When it did not come in time.
    pub async fn take(&self, key: ApiKeyId) -> Result<OwnedSemaphorePermit, NoTurn> {
        let turns = self.by_key.get_with(key, || Arc::new(Semaphore::new(self.of_key)));
        timeout(WITHIN, turns.acquire_owned()).await.ok().and_then(Result::ok).ok_or(NoTurn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_for_its_turns_and_others_have_theirs() {
        let turns = Turns::new(2);
        let key = |number| ApiKeyId(number);
        let mut taken = vec![turns.take(key(1)).await.unwrap(), turns.take(key(1)).await.unwrap()];
        assert_eq!(turns.take(key(1)).await.err(), Some(NoTurn));
        assert!(turns.take(key(2)).await.is_ok());
        taken.pop();
        assert!(turns.take(key(1)).await.is_ok());
    }
}
