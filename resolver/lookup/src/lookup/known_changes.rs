//! A bounded memory of changed links: since when each one's rows are outdated.
//!
//! 1. A row is outdated if it was read before an instant that is noted for its link. Redirects do
//!    not use such a row, whichever server it comes from.
//! 2. Entries do not expire: while the primary is away, a copy may offer the same old row for
//!    hours.
//! 3. When the memory is full, its older half is forgotten. From then on every row counts as
//!    outdated that was read before the last instant of that half.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use codes::LinkId;

use crate::freshness::ReadAt;

const HALF: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct KnownChanges(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    young: Half,
    old: Half,
    forgotten: Option<ReadAt>,
}

#[derive(Debug, Default)]
struct Half {
    links: HashMap<LinkId, ReadAt>,
    latest: Option<ReadAt>,
}

impl KnownChanges {
    /// Notes that rows of a link that were read at `at` or earlier are outdated.
    pub(super) fn note(&self, id: LinkId, at: ReadAt) {
        let mut state = self.state();
        let noted = state.young.links.entry(id).or_insert(at);
        *noted = at.max(*noted);
        state.young.latest = state.young.latest.max(Some(at));
        if state.young.links.len() >= HALF {
            state.forgotten = state.forgotten.max(state.old.latest);
            state.old = std::mem::take(&mut state.young);
        }
    }

    /// Returns whether a row of a link that was read at `at` is or may be outdated.
    pub(super) fn is_outdated(&self, id: LinkId, at: ReadAt) -> bool {
        let state = self.state();
        let noted = [state.young.links.get(&id), state.old.links.get(&id), state.forgotten.as_ref()];
        noted.into_iter().flatten().any(|noted| *noted >= at)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use supply::safety_rule::SafetyRules;

    use super::*;
    use crate::freshness::Freshness;

    #[tokio::test(start_paused = true)]
    async fn what_is_forgotten_counts_as_changed() {
        let (changes, freshness) = (KnownChanges::default(), Freshness::new(SafetyRules::default()));
        let tick = async || {
            tokio::time::advance(std::time::Duration::from_millis(1)).await;
            freshness.now()
        };
        let id = LinkId::from_stored;
        let (before, changed, after) = (tick().await, tick().await, tick().await);
        changes.note(id(0), changed);
        changes.note(id(0), before);
        assert!(changes.is_outdated(id(0), before) && changes.is_outdated(id(0), changed));
        assert!(!changes.is_outdated(id(0), after) && !changes.is_outdated(id(1), before));

        let last = tick().await;
        let many = i64::try_from(HALF).unwrap();
        (1..many).for_each(|number| changes.note(id(number), last));
        assert!(
            changes.is_outdated(id(0), changed) && !changes.is_outdated(id(-1), before),
            "nothing is lost"
        );
        let (newest, later) = (tick().await, tick().await);
        (many..2 * many).for_each(|number| changes.note(id(number), newest));
        assert!(changes.is_outdated(id(-1), last), "any link may have been among the forgotten ones");
        assert!(!changes.is_outdated(id(-1), newest) && !changes.is_outdated(id(many), later));
    }
}
