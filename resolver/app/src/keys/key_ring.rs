//! API keys and browser sessions: looked up in the store, with the answers cached for a moment.

mod lookups;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use links::{
    SessionHash,
    api_key::{ApiKeyId, Grant, KeyHash, SecretNumber},
};
use store::{Keys, StoreError};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use lookups::Answers;
pub use lookups::Lookups;

/// How long an answer of the database counts after its question was sent. A revoked key and its
/// sessions stop working within it, everywhere that the database answers, however slowly.
const BELIEVED: Duration = Duration::from_secs(1);
/// Interval at which the used keys are recorded in the store.
const USE_NOTED_EVERY: Duration = Duration::from_secs(10);
/// Maximum number of cached keys, known and unknown ones together, and of sessions. A flood of
/// wrong ones cannot fill the memory.
const REMEMBERED: u64 = 10_000;
/// Maximum number of concurrent lookups of keys and sessions that were not valid recently. Callers
/// with a valid one find connections beside any number of them.
const STRANGERS: usize = 2;

/// A cache of API keys and browser sessions in front of the store.
pub struct KeyRing {
    /// Keys by the hash of their secret.
    pub secrets: Lookups<KeyHash>,
    /// Keys by the hash of the token of a session that they opened.
    pub sessions: Lookups<SessionHash>,
    /// Answers by key id, for calls that outlast many of them.
    grants: Answers<(ApiKeyId, SecretNumber)>,
    /// Keys that were used since the last record in the store. There are never more than keys
    /// exist.
    used: Mutex<BTreeSet<ApiKeyId>>,
}

impl Default for KeyRing {
    fn default() -> Self {
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        let (secrets, sessions) = (Lookups::new(Arc::clone(&strangers)), Lookups::new(strangers));
        Self { secrets, sessions, grants: Answers::new(), used: Mutex::default() }
    }
}

impl KeyRing {
    /// Returns the grant of a key; `None` if the key is unknown or revoked.
    ///
    /// If links are on nodes, one that was valid lately stands in while the database does not
    /// answer: creates go on with the numbers in hand.
    pub async fn find(&self, store: &dyn Keys, hash: KeyHash) -> Result<Option<Grant>, StoreError> {
        let asked = self.secrets.find(&hash, store.find_api_key(&hash), store.is_distributed());
        asked.await.inspect(|grant| self.note_use(grant))
    }

    /// Returns the grant of the key with an id; `None` if the key was revoked or has expired, or
    /// its secret is not valid any more. The caller has presented that before, or a token that was
    /// signed for it.
    pub async fn find_by_id(
        &self,
        store: &dyn Keys,
        id: ApiKeyId,
        secret: SecretNumber,
    ) -> Result<Option<Grant>, StoreError> {
        let asked = Instant::now();
        if let Some(answer) = self.grants.get(&(id, secret), asked) {
            return Ok(answer);
        }
        let answer = store.find_grant(id, secret).await?;
        self.grants.insert((id, secret), asked, answer.clone());
        self.note_use(&answer);
        Ok(answer)
    }

    /// Returns the grant of the key that opened a session; `None` if the session is unknown, has
    /// ended or expired, or its key or secret is not valid any more.
    pub async fn find_session(
        &self,
        store: &dyn Keys,
        hash: SessionHash,
    ) -> Result<Option<Grant>, StoreError> {
        let asked = self.sessions.find(&hash, store.find_session(&hash), false);
        asked.await.inspect(|grant| self.note_use(grant))
    }

    fn note_use(&self, grant: &Option<Grant>) {
        if let Some(grant) = grant {
            self.used().insert(grant.id);
        }
    }

    fn used(&self) -> MutexGuard<'_, BTreeSet<ApiKeyId>> {
        // A poisoned lock can be used: the set is consistent whenever its lock is free.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records in the store which keys are in use, for as long as the process runs. Uses that cannot be
/// recorded are recorded with the next ones.
pub async fn note_used(keys: Arc<KeyRing>, store: Arc<dyn Keys>) {
    loop {
        sleep(USE_NOTED_EVERY).await;
        let used = std::mem::take(&mut *keys.used());
        if used.is_empty() {
            continue;
        }
        let ids: Vec<ApiKeyId> = used.into_iter().collect();
        if let Err(error) = store.note_keys_used(&ids).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "note the use of API keys");
            keys.used().extend(ids);
        }
    }
}

#[cfg(test)]
mod tests {
    use links::{
        api_key::{ApiKey, KeyLimits, NewKey, OPERATOR},
        scope::Scopes,
    };
    use rusqlite::Connection;
    use store::{Store as _, sqlite::SqliteStore};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn a_session_that_ends_on_this_process_is_not_believed_any_longer() {
        let connection = Arc::new(Mutex::new(Connection::open_in_memory().unwrap()));
        let store = SqliteStore::here(&connection);
        store.migrate().await.unwrap();
        let new = NewKey {
            name: "web".to_owned(),
            hash: ApiKey::draw().unwrap().hash(),
            scopes: Scopes::admin(),
            expires_at: None,
            limits: KeyLimits::default(),
        };
        let id = store.add_api_key(&new, OPERATOR).await.unwrap().unwrap();
        let (keys, hash) = (KeyRing::default(), SessionHash::of(b"token"));
        let find = async || keys.find_session(&store, hash.clone()).await.unwrap().map(|grant| grant.id);

        assert_eq!((find().await, keys.sessions.remembers(&hash)), (None, false));
        store.open_session(&hash, (id, SecretNumber(1)), HOUR).await.unwrap();
        keys.sessions.forget(&hash);
        assert_eq!((find().await, keys.sessions.remembers(&hash)), (Some(id), true));
        assert_eq!(keys.used().iter().copied().collect::<Vec<_>>(), [id]);

        store.end_session(&hash).await.unwrap();
        keys.sessions.forget(&hash);
        assert_eq!((find().await, keys.sessions.remembers(&hash)), (None, false));
    }
}
