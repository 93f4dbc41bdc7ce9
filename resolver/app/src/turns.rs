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

/// Turns of one key at queries that may take the database long, such as lists: half of the
/// connections that are kept for them.
const QUERIES_OF_KEY: usize = 2;
/// Turns of one key at the connections for everything else. Changes of one link wait for each other
/// there.
const WRITES_OF_KEY: usize = 4;

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

/// The turns of each key, by what the database is asked to do.
#[derive(Debug)]
pub struct KeyTurns {
    queries: Turns,
    writes: Arc<Turns>,
}

impl Default for KeyTurns {
    fn default() -> Self {
        Self { queries: Turns::new(QUERIES_OF_KEY), writes: Arc::new(Turns::new(WRITES_OF_KEY)) }
    }
}

impl KeyTurns {
    /// Waits for a turn at a query that may take the database long.
    ///
    /// # Errors
    /// Returns [`NoTurn`] if the key's earlier queries took too long.
    pub async fn query(&self, key: ApiKeyId) -> Result<OwnedSemaphorePermit, NoTurn> {
        self.queries.take(key).await
    }

    /// Waits for a turn at a brief statement: a change of a link, tag, domain or rule, or a read of
    /// what a link has beside its row. Creates that are a transaction of their own take these turns
    /// too; plain ones have connections of their own.
    ///
    /// # Errors
    /// Returns [`NoTurn`] if the key's earlier statements took too long.
    pub async fn write(&self, key: ApiKeyId) -> Result<OwnedSemaphorePermit, NoTurn> {
        self.writes.take(key).await
    }

    /// Returns the turns that creates and changes share.
    #[must_use]
    pub fn writes(&self) -> Arc<Turns> {
        Arc::clone(&self.writes)
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
