//! Cached answers of the database, each with the instant at which its question was sent.
//!
//! 1. An answer tells what was so when its question was sent, or later. So it counts for
//!    [`BELIEVED`] from then on, however long it was under way.
//! 2. A caller may also use any answer whose question was sent after its call arrived, as if it had
//!    asked itself. So a database that takes longer than [`BELIEVED`] still answers every caller.
//! 3. An answer never replaces that to a later question.

use std::{hash::Hash, sync::Arc};

use foldhash::quality::RandomState;
use links::api_key::Grant;
use moka::{ops::compute::Op, sync::Cache};
use tokio::time::Instant;

use super::{BELIEVED, REMEMBERED};

/// An answer; the inner `None` means that there is no grant.
#[derive(Clone, Debug)]
struct Answer {
    asked: Instant,
    grant: Option<Grant>,
}

pub(super) struct Answers<Q>(Cache<Q, Arc<Answer>, RandomState>);

impl<Q: Hash + Eq + Clone + Send + Sync + 'static> Answers<Q> {
    pub(super) fn new() -> Self {
        // Counted from the insertion, so that it only frees memory.
        let cache = Cache::builder().max_capacity(REMEMBERED).time_to_live(2 * BELIEVED);
        Self(cache.build_with_hasher(RandomState::default()))
    }

    /// Returns the answer that a call which arrived at `arrived` may use.
    pub(super) fn get(&self, question: &Q, arrived: Instant) -> Option<Option<Grant>> {
        let answer = self.0.get(question)?;
        let is_current = answer.asked >= arrived || answer.asked.elapsed() < BELIEVED;
        is_current.then(|| answer.grant.clone())
    }

    /// Caches the answer to a question that was sent at `asked`.
    pub(super) fn insert(&self, question: Q, asked: Instant, grant: Option<Grant>) {
        let answer = Arc::new(Answer { asked, grant });
        self.0.entry(question).and_compute_with(|known| match known {
            Some(known) if known.value().asked > asked => Op::Nop,
            _ => Op::Put(answer),
        });
    }

    pub(super) fn forget(&self, question: &Q) {
        self.0.invalidate(question);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

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
