//! API keys: random, shown once, stored as a hash.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::quality::RandomState;
use jiff::Timestamp;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::{
    links::{DomainId, Link},
    scope::{Scope, Scopes},
    store::{LinkStore, StoreError},
};

/// A key's number in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiKeyId(pub i64);

/// SHA-256 of a key. A key has 256 random bits, so a slow hash would add nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

/// A key as a client sends it; never printed but once, where a person asked for it.
pub struct ApiKey(String);

/// Who acts on the command line, beside the server.
pub const OPERATOR: ApiKeyId = ApiKeyId(0);

/// What a key may not do, whatever its scopes. Stored as an object: a field that is added here needs no migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyLimits {
    /// The one domain whose links it may see and make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainId>,
    /// Whether it may see links of its own only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_links_only: bool,
    /// Calls in a minute; those of all resolvers are not added up. As many as any key, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
}

impl KeyLimits {
    /// Whether some links are none of its business.
    #[must_use]
    pub fn hides_links(&self) -> bool {
        self.domain.is_some() || self.own_links_only
    }
}

/// A key that was found: whose it is and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The key's number.
    pub id: ApiKeyId,
    /// Its name. Each call has a grant of its own, and shares this.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Scopes,
    /// What it may not do all the same.
    pub limits: KeyLimits,
}

impl Grant {
    /// Whether it may know of this link.
    #[must_use]
    pub fn sees(&self, link: &Link) -> bool {
        let is_own = !self.limits.own_links_only || link.created_by == self.id;
        is_own && self.limits.domain.is_none_or(|domain| domain == link.domain())
    }

    /// Whether a link that exists may be given to it instead of a new one only if it is its own: a
    /// key that must not read links is not to learn of others' titles, tags and limits by wishing
    /// for the same.
    #[must_use]
    pub fn finds_own_only(&self) -> bool {
        self.limits.own_links_only || !self.scopes.allow(Scope::Read)
    }

    /// Whether it may be given this link instead of a new one.
    #[must_use]
    pub fn may_be_given(&self, link: &Link) -> bool {
        self.sees(link) && (link.created_by == self.id || !self.finds_own_only())
    }
}

/// A key to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// What to call it.
    pub name: String,
    /// Its hash.
    pub hash: KeyHash,
    /// What it may do.
    pub scopes: Scopes,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// What it may not do all the same.
    pub limits: KeyLimits,
}

/// What may be told of a stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// Its number.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Until when it is good.
    pub expires_at: Option<Timestamp>,
    /// What it may not do, whatever its scopes.
    pub limits: KeyLimits,
    /// When it was last used, to [`USE_NOTED_EVERY`].
    pub last_used_at: Option<Timestamp>,
}

/// A name or key that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// Too short to be safe, or not fit for a header.
    #[error("expected 16 to 128 visible ASCII characters")]
    Key,
    /// Not fit for a table.
    #[error("expected 1 to 64 characters of A-Z, a-z, 0-9, '-', '_' and '.'")]
    Name,
}

impl ApiKey {
    /// Draws a key.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Takes a key that an operator chose.
    ///
    /// # Errors
    /// When it is too short to be safe or not fit for a header.
    pub fn chosen(text: &str) -> Result<Self, ApiKeyError> {
        let fits = (16..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(ApiKeyError::Key) }
    }

    /// The hash that is stored.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// The key itself, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Checks a key's name.
///
/// # Errors
/// Says what was expected.
pub fn check_name(name: &str) -> Result<(), ApiKeyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) { Ok(()) } else { Err(ApiKeyError::Name) }
}

impl KeyHash {
    /// The hash of whatever a client sent.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// The hash as it is stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// How long an answer of the database is believed: a revoked key stops within it, everywhere.
const BELIEVED: Duration = Duration::from_secs(1);
/// How often the keys that were used are noted in the store.
const USE_NOTED_EVERY: Duration = Duration::from_secs(10);
/// How long a good key keeps its owner from being taken for somebody who guesses.
const GOOD_LATELY: Duration = Duration::from_secs(600);
/// Keys remembered, known and unknown ones together: a flood of wrong keys cannot fill the memory.
const REMEMBERED: u64 = 10_000;

/// Keys that were not good lately and are looked up at a time: whoever has a good one finds connections beside any number of them.
const STRANGERS: usize = 2;
/// How long a lookup waits for others.
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);

/// Looks keys up, and remembers the answers for a moment.
pub struct KeyRing {
    /// Of the keys that are being looked up: the store is asked once for all calls that come with the same one.
    asked: Cache<KeyHash, Arc<tokio::sync::Mutex<()>>>,
    strangers: Semaphore,
    answers: Cache<KeyHash, Option<Grant>, RandomState>,
    /// Keys that were used since this was last noted in the store: never more than there are.
    used: Mutex<BTreeSet<ApiKeyId>>,
    /// What was good lately: whoever comes with one is not taken for somebody who guesses, though others do from the same address.
    good: Cache<KeyHash, ()>,
}

impl Default for KeyRing {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyRing {
    /// Knows no key yet.
    #[must_use]
    pub fn new() -> Self {
        let good = Cache::builder().max_capacity(REMEMBERED).time_to_live(GOOD_LATELY).build();
        let answers = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED);
        let answers = answers.build_with_hasher(RandomState::default());
        let asked = Cache::builder().max_capacity(REMEMBERED).time_to_idle(GOOD_LATELY).build();
        Self { asked, strangers: Semaphore::new(STRANGERS), answers, used: Mutex::default(), good }
    }

    /// Whether this was a good key lately.
    #[must_use]
    pub fn remembers(&self, hash: &KeyHash) -> bool {
        self.good.contains_key(hash)
    }

    /// What was found a moment ago, without asking the store.
    #[must_use]
    pub fn answered(&self, hash: &KeyHash) -> Option<Option<Grant>> {
        self.answers.get(hash)
    }

    /// Whose key it is and what it may do; none when it is unknown or revoked.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn find(&self, store: &dyn LinkStore, hash: KeyHash) -> Result<Option<Grant>, StoreError> {
        if let Some(answer) = self.answers.get(&hash) {
            return Ok(answer);
        }
        let answer = self.in_turn(&hash, store.find_api_key(&hash)).await?;
        if let Some(grant) = &answer {
            self.good.insert(hash, ());
            // A key in use is looked up again once it is believed no more, so this hears of it each second.
            self.used().insert(grant.id);
        }
        Ok(answer)
    }

    /// Asks when no other call asks for the same key, and few ask for strange ones; unless somebody was told meanwhile.
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
        // A set of numbers is whole whenever its lock is free.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes in the store which keys are in use, for as long as the process runs. What cannot be noted is noted with the next ones.
pub(crate) async fn note_used(keys: Arc<KeyRing>, store: Arc<dyn LinkStore>) {
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
