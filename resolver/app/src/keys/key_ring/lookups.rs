//! Lookups by the hash of a key or of a session's token, with the answers cached for a moment.

use std::{hash::Hash, sync::Arc, time::Duration};

use foldhash::quality::RandomState;
use links::api_key::Grant;
use moka::{ops::compute::Op, sync::Cache};
use store::StoreError;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::{BELIEVED, REMEMBERED};

/// How long after its last lookup a valid hash counts as recently valid, so that it is not taken
/// for a guess.
const GOOD_LATELY: Duration = Duration::from_secs(600);
/// How long a lookup may wait for others.
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);

/// A cache of the grants of one kind of hash.
pub struct Lookups<H> {
    /// A lock for each hash that is being looked up: concurrent calls with the same one send one
    /// query.
    asked: Cache<H, Arc<tokio::sync::Mutex<()>>>,
    /// Permits of lookups of hashes that were not valid recently.
    strangers: Arc<Semaphore>,
    answers: Answers<H>,
    /// Hashes that were valid recently, with their grants and the instants of the questions. A
    /// caller with one of them is not taken for a guesser, even if others at the same address
    /// guess.
    good: Cache<H, (Instant, Grant)>,
}

impl<H: Hash + Eq + Clone + Send + Sync + 'static> Lookups<H> {
    /// Creates an empty cache. `strangers` are permits of lookups, which caches may share.
    pub(super) fn new(strangers: Arc<Semaphore>) -> Self {
        let good = Cache::builder().max_capacity(REMEMBERED).time_to_live(GOOD_LATELY).build();
        let asked = Cache::builder().max_capacity(REMEMBERED).time_to_idle(GOOD_LATELY).build();
        Self { asked, strangers, answers: Answers::new(), good }
    }

    /// Returns whether a hash was valid recently, and was not forgotten.
    pub fn remembers(&self, hash: &H) -> bool {
        self.good.contains_key(hash)
    }

    /// Returns the cached answer for a hash; the inner `None` means that it has no grant.
    pub fn answered(&self, hash: &H) -> Option<Option<Grant>> {
        self.answers.get(hash, Instant::now())
    }

    /// Removes a hash, such as that of a session which the store has just opened or ended. A lookup
    /// under way meanwhile may still cache an older answer, which then counts for a second, as on
    /// other processes.
    pub fn forget(&self, hash: &H) {
        self.good.invalidate(hash);
        self.answers.forget(hash);
    }

    /// Returns the grant of a hash. Without a cached answer, runs the query when no other call
    /// queries the same hash and there are few queries of unfamiliar hashes.
    ///
    /// With `outlasts`, the grant of a hash that was valid recently stands in if the query fails. A
    /// late answer is waited for: the key may have been revoked.
    pub(super) async fn find(
        &self,
        hash: &H,
        ask: impl Future<Output = Result<Option<Grant>, StoreError>>,
        outlasts: bool,
    ) -> Result<Option<Grant>, StoreError> {
        let arrived = Instant::now();
        if let Some(answer) = self.answers.get(hash, arrived) {
            return Ok(answer);
        }
        let turn = async {
            let first = self.asked.get_with(hash.clone(), Arc::default).lock_owned().await;
            let place = match self.remembers(hash) {
                true => None,
                false => Some(self.strangers.acquire().await.map_err(|_| StoreError::TimedOut)?),
            };
            Ok((first, place))
        };
        let _turn = timeout(LOOKUP_WITHIN, turn).await.unwrap_or(Err(StoreError::TimedOut))?;
        // Another call's answer may have been cached in the meantime.
        if let Some(answer) = self.answers.get(hash, arrived) {
            return Ok(answer);
        }
        let asked = Instant::now();
        // Told by the one that asks, not by all that wait for it.
        let told = |error: &StoreError| {
            tracing::warn!(error = error as &dyn std::error::Error, "look up an API key or a session");
        };
        let answer = match ask.await.inspect_err(told) {
            Ok(answer) => answer,
            Err(error) => {
                let lately = outlasts.then(|| self.good.get(hash)).flatten();
                let lately = lately.filter(|(since, _)| since.elapsed() < GOOD_LATELY).ok_or(error)?;
                let stand_in = Some(lately.1);
                // Counted from the failure, for those that have waited for it.
                self.answers.insert(hash.clone(), Instant::now(), stand_in.clone());
                return Ok(stand_in);
            }
        };
        match &answer {
            Some(grant) => self.good.insert(hash.clone(), (asked, grant.clone())),
            None if outlasts => self.good.invalidate(hash),
            None => {}
        }
        self.answers.insert(hash.clone(), asked, answer.clone());
        Ok(answer)
    }
}

/// Cached answers of the database, each with the instant at which its question was sent.
///
/// 1. An answer tells what was so when its question was sent, or later. So it counts for
///    [`BELIEVED`] from then on, however long it was under way.
/// 2. A caller may also use any answer whose question was sent after its call arrived, as if it had
///    asked itself. So a database that takes longer than [`BELIEVED`] still answers every caller.
/// 3. An answer never replaces that to a later question.
pub(super) struct Answers<Q>(Cache<Q, Arc<(Instant, Option<Grant>)>, RandomState>);

impl<Q: Hash + Eq + Clone + Send + Sync + 'static> Answers<Q> {
    pub(super) fn new() -> Self {
        // Counted from the insertion, so that it only frees memory.
        let cache = Cache::builder().max_capacity(REMEMBERED).time_to_live(2 * BELIEVED);
        Self(cache.build_with_hasher(RandomState::default()))
    }

    /// Returns the answer that a call which arrived at `arrived` may use.
    pub(super) fn get(&self, question: &Q, arrived: Instant) -> Option<Option<Grant>> {
        let answer = self.0.get(question)?;
        let (asked, grant) = &*answer;
        let is_current = *asked >= arrived || asked.elapsed() < BELIEVED;
        is_current.then(|| grant.clone())
    }

    pub(super) fn insert(&self, question: Q, asked: Instant, grant: Option<Grant>) {
        let answer = Arc::new((asked, grant));
        self.0.entry(question).and_compute_with(|known| match known {
            Some(known) if known.value().0 > asked => Op::Nop,
            _ => Op::Put(answer),
        });
    }

    pub(super) fn forget(&self, question: &Q) {
        self.0.invalidate(question);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use links::{
        api_key::{ApiKeyId, KeyHash, KeyLimits, SecretNumber},
        scope::Scopes,
    };
    use tokio::time::{advance, sleep};

    use super::{super::STRANGERS, *};

    fn hash(key: &str) -> KeyHash {
        KeyHash::of(key.as_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn calls_with_one_key_ask_once_and_strangers_leave_room_for_good_ones() {
        let keys = Lookups::new(Arc::new(Semaphore::new(STRANGERS)));
        let (asked, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let under_way = AtomicUsize::new(0);
        let ask = || async {
            asked.fetch_add(1, Ordering::Relaxed);
            most.fetch_max(under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            under_way.fetch_sub(1, Ordering::Relaxed);
            Ok(None)
        };
        let one = hash("one");
        join_all((0..100).map(|_| keys.find(&one, ask(), false))).await;
        assert_eq!(asked.load(Ordering::Relaxed), 1);

        let strangers: Vec<KeyHash> = (0..6).map(|number| hash(&format!("stranger{number}"))).collect();
        join_all(strangers.iter().map(|stranger| keys.find(stranger, ask(), false))).await;
        assert_eq!(most.load(Ordering::Relaxed), STRANGERS);

        let waiting = join_all((0..100).map(|number| {
            let keys = &keys;
            async move { keys.find(&hash(&format!("other{number}")), std::future::pending(), false).await }
        }));
        let good = async {
            sleep(Duration::from_millis(10)).await;
            keys.good.insert(hash("good"), (Instant::now(), grant()));
            let begun = tokio::time::Instant::now();
            keys.find(&hash("good"), async { Ok(None) }, false).await.unwrap();
            assert!(begun.elapsed().is_zero(), "a key that was good lately waits for no stranger");
        };
        let (waited, ()) = tokio::join!(timeout(2 * LOOKUP_WITHIN, waiting), good);
        assert!(waited.is_err(), "those that ask are bounded by the store");
    }

    fn grant() -> Grant {
        Grant {
            id: ApiKeyId(1),
            secret: SecretNumber(1),
            name: "a key".into(),
            scopes: Scopes::admin(),
            limits: KeyLimits::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_recent_grant_stands_in_for_a_while_and_not_once_it_was_revoked() {
        let keys = Lookups::new(Arc::new(Semaphore::new(STRANGERS)));
        let key = hash("key");
        let find = async |answer: Result<Option<Grant>, StoreError>, outlasts| {
            advance(BELIEVED).await;
            keys.find(&key, async { answer }, outlasts).await.is_ok_and(|found| found.is_some())
        };
        let away = || Err(StoreError::TimedOut);
        assert!(!find(away(), true).await, "it is not known yet");
        assert!(find(Ok(Some(grant())), true).await);
        assert!(find(away(), true).await);
        assert!(!find(away(), false).await, "only where creates go on");
        advance(BELIEVED).await;
        let late = async {
            sleep(2 * BELIEVED).await;
            away()
        };
        let waits = async { keys.find(&key, async { Ok(None) }, true).await.unwrap().is_some() };
        let (late, waits) = tokio::join!(keys.find(&key, late, true), waits);
        assert!(late.unwrap().is_some() && waits, "those that have waited do not ask again");
        advance(GOOD_LATELY).await;
        assert!(!find(away(), true).await, "a grant that stands in is not valid for longer by that");
        assert!(find(Ok(Some(grant())), true).await);
        assert!(!find(Ok(None), true).await);
        assert!(!find(away(), true).await, "it was revoked");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_a_second_after_its_question() {
        let (answers, asked) = (Answers::new(), Instant::now());
        advance(Duration::from_millis(700)).await;
        answers.insert("key", asked, None);
        let known = || answers.get(&"key", Instant::now()).is_some();
        assert!(known());
        advance(Duration::from_millis(299)).await;
        assert!(known());
        advance(Duration::from_millis(1)).await;
        assert!(!known(), "300 ms after the answer");
        assert!(answers.get(&"key", asked).is_some(), "the question was sent for this call");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_does_not_replace_that_to_a_later_question() {
        let (answers, early) = (Answers::new(), Instant::now());
        advance(Duration::from_millis(600)).await;
        answers.insert("key", Instant::now(), None);
        answers.insert("key", early, None);
        advance(Duration::from_millis(600)).await;
        assert!(answers.get(&"key", Instant::now()).is_some());
    }
}
