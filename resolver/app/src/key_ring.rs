//! API keys: looked up in the store, with the answers cached for a moment.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::quality::RandomState;
use links::api_key::{ApiKeyId, Grant, KeyHash, SecretNumber};
use moka::sync::Cache;
use store::{Keys, StoreError};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

/// How long an answer of the database is cached. A revoked key stops working within it, everywhere.
const BELIEVED: Duration = Duration::from_secs(1);
/// Interval at which the used keys are recorded in the store.
const USE_NOTED_EVERY: Duration = Duration::from_secs(10);
/// How long after its last lookup a valid key counts as recently valid, so that it is not taken for
/// a guess.
const GOOD_LATELY: Duration = Duration::from_secs(600);
/// Maximum number of cached keys, known and unknown ones together. A flood of wrong keys cannot
/// fill the memory.
const REMEMBERED: u64 = 10_000;

/// Maximum number of concurrent lookups of keys that were not valid recently. Callers with a valid
/// key find connections beside any number of them.
const STRANGERS: usize = 2;
/// How long a lookup may wait for others.
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);

/// A cache of API keys in front of the store.
pub struct KeyRing {
    /// A lock for each key that is being looked up: concurrent calls with the same key send one
    /// query.
    asked: Cache<KeyHash, Arc<tokio::sync::Mutex<()>>>,
    strangers: Semaphore,
    answers: Cache<KeyHash, Option<Grant>, RandomState>,
    /// Answers by key id, for calls that outlast many of them.
    grants: Cache<(ApiKeyId, SecretNumber), Option<Grant>>,
    /// Keys that were used since the last record in the store. There are never more than keys
    /// exist.
    used: Mutex<BTreeSet<ApiKeyId>>,
    /// Keys that were valid recently. A caller with one of them is not taken for a guesser, even if
    /// others at the same address guess.
    good: Cache<KeyHash, ()>,
}

impl Default for KeyRing {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyRing {
    /// Creates an empty cache.
    #[must_use]
    pub fn new() -> Self {
        let good = Cache::builder().max_capacity(REMEMBERED).time_to_live(GOOD_LATELY).build();
        let answers = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED);
        let answers = answers.build_with_hasher(RandomState::default());
        let grants = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build();
        let asked = Cache::builder().max_capacity(REMEMBERED).time_to_idle(GOOD_LATELY).build();
        let strangers = Semaphore::new(STRANGERS);
        Self { asked, strangers, answers, grants, used: Mutex::default(), good }
    }

    /// Returns whether a key was valid recently.
    #[must_use]
    pub fn remembers(&self, hash: &KeyHash) -> bool {
        self.good.contains_key(hash)
    }

    /// Returns the cached answer for a key; the inner `None` means that the key is unknown or
    /// revoked.
    #[must_use]
    pub fn answered(&self, hash: &KeyHash) -> Option<Option<Grant>> {
        self.answers.get(hash)
    }

    /// Returns the grant of a key; `None` if the key is unknown or revoked.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store does not answer.
    pub async fn find(&self, store: &dyn Keys, hash: KeyHash) -> Result<Option<Grant>, StoreError> {
        if let Some(answer) = self.answers.get(&hash) {
            return Ok(answer);
        }
        let answer = self.in_turn(&hash, store.find_api_key(&hash)).await?;
        if let Some(grant) = &answer {
            self.good.insert(hash, ());
            // The cached answer of a key in use expires every second, so its use is recorded that
            // often.
            self.used().insert(grant.id);
        }
        Ok(answer)
    }

    /// Returns the grant of the key with an id; `None` if the key was revoked or has expired, or
    /// its secret is not valid any more. The caller has presented that before, or a token that was
    /// signed for it.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store does not answer.
    pub async fn find_by_id(
        &self,
        store: &dyn Keys,
        id: ApiKeyId,
        secret: SecretNumber,
    ) -> Result<Option<Grant>, StoreError> {
        if let Some(answer) = self.grants.get(&(id, secret)) {
            return Ok(answer);
        }
        let answer = store.find_grant(id, secret).await?;
        self.grants.insert((id, secret), answer.clone());
        if answer.is_some() {
            self.used().insert(id);
        }
        Ok(answer)
    }

    /// Runs a query when no other call queries the same key and there are few queries of unfamiliar
    /// keys. Skips it if another call's answer has been cached in the meantime.
    async fn in_turn(
        &self,
        hash: &KeyHash,
        ask: impl Future<Output = Result<Option<Grant>, StoreError>>,
    ) -> Result<Option<Grant>, StoreError> {
        let turn = async {
            let first = self.asked.get_with(hash.clone(), Arc::default).lock_owned().await;
            let place = match self.remembers(hash) {
                true => None,
                false => Some(self.strangers.acquire().await.map_err(|_| StoreError::TimedOut)?),
            };
            Ok((first, place))
        };
        let _turn = timeout(LOOKUP_WITHIN, turn).await.unwrap_or(Err(StoreError::TimedOut))?;
        if let Some(answer) = self.answers.get(hash) {
            return Ok(answer);
        }
        let answer = ask.await?;
        self.answers.insert(hash.clone(), answer.clone());
        Ok(answer)
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    fn hash(key: &str) -> KeyHash {
        KeyHash::of(key.as_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn calls_with_one_key_ask_once_and_strangers_leave_room_for_good_ones() {
        let (keys, asked, most) = (KeyRing::new(), AtomicUsize::new(0), AtomicUsize::new(0));
        let under_way = AtomicUsize::new(0);
        let ask = || async {
            asked.fetch_add(1, Ordering::Relaxed);
            most.fetch_max(under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            under_way.fetch_sub(1, Ordering::Relaxed);
            Ok(None)
        };
        let one = hash("one");
        join_all((0..100).map(|_| keys.in_turn(&one, ask()))).await;
        assert_eq!(asked.load(Ordering::Relaxed), 1);

        let strangers: Vec<KeyHash> = (0..6).map(|number| hash(&format!("stranger{number}"))).collect();
        join_all(strangers.iter().map(|stranger| keys.in_turn(stranger, ask()))).await;
        assert_eq!(most.load(Ordering::Relaxed), STRANGERS);

        let waiting = join_all((0..100).map(|number| {
            let keys = &keys;
            async move { keys.in_turn(&hash(&format!("other{number}")), ask_for_ever()).await }
        }));
        let good = async {
            sleep(Duration::from_millis(10)).await;
            keys.good.insert(hash("good"), ());
            let begun = tokio::time::Instant::now();
            keys.in_turn(&hash("good"), async { Ok(None) }).await.unwrap();
            assert!(begun.elapsed().is_zero(), "a key that was good lately waits for no stranger");
        };
        let (waited, ()) = tokio::join!(timeout(2 * LOOKUP_WITHIN, waiting), good);
        assert!(waited.is_err(), "those that ask are bounded by the store");
    }

    async fn ask_for_ever() -> Result<Option<Grant>, StoreError> {
        std::future::pending().await
    }
}
