//! The set of unminted slugs: mintable custom slugs whose numbers may lie above the ceiling, where
//! arithmetic says that no link exists.
//!
//! 1. The set of their ids is loaded from the store when the change listener connects, and extended
//!    by each notification from then on.
//! 2. It proves an absence only while it is trusted: for [`TRUSTED`] after the listener's last
//!    probe was *sent*, once all notifications that preceded the answer are in the set. A create of
//!    such a slug is answered that long after its COMMIT. So when a client knows the code, every
//!    probe that is still trusted was sent after the COMMIT, and its answer came after the
//!    notification.
//! 3. With more ids than fit the set is not trusted, and the store is asked: slower, never wrong.

use std::{
    collections::HashSet,
    sync::{Arc, RwLock},
    time::Duration,
};

use codes::LinkId;
use store::Links;
use supply::safety_rule::{self, SafetyRule};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// How long the set is trusted after the listener's last probe was sent.
pub const TRUSTED: Duration = Duration::from_millis(250);
/// Maximum number of ids; each takes 16 bytes.
const IDS_MAX: usize = 1_000_000;
/// Number of ids on a page of a load.
const PAGE: usize = 10_000;
const PAUSE: Duration = Duration::from_secs(1);

/// The set of mintable custom slugs, by id.
pub(super) struct UnmintedSlugs {
    /// A std lock: it is held for a few instructions and never across an await. Only lookups of
    /// codes above the ceiling use it.
    state: RwLock<State>,
    stale: Notify,
}

struct State {
    ids: HashSet<LinkId>,
    /// The number of the latest requested load, and of the latest that was completed.
    wanted: u64,
    read: u64,
    until: Trust,
}

enum Trust {
    Until(Instant),
    Always,
}

impl UnmintedSlugs {
    /// Creates an empty set, which is not trusted until it has been loaded.
    pub(super) fn new() -> Self {
        let state = State { ids: HashSet::new(), wanted: 0, read: 0, until: Trust::Until(Instant::now()) };
        Self { state: RwLock::new(state), stale: Notify::new() }
    }

    /// Returns whether the code of this id is surely not a custom slug.
    pub(super) fn rules_out(&self, id: LinkId, now: Instant) -> bool {
        let state = self.read_state();
        let is_trusted = match state.until {
            Trust::Until(until) => now < until || !safety_rule::is_on(SafetyRule::Trusted),
            Trust::Always => true,
        };
        let is_whole = state.wanted > 0 && state.read == state.wanted && state.ids.len() < IDS_MAX;
        is_trusted && is_whole && !state.ids.contains(&id)
    }

    /// Adds an id.
    pub(super) fn add(&self, id: LinkId) {
        let mut state = self.write_state();
        if state.ids.len() < IDS_MAX {
            state.ids.insert(id);
        }
    }

    /// Trusts the set for [`TRUSTED`] after `sent`, when the probe was sent.
    pub(super) fn trust(&self, sent: Instant) {
        self.write_state().until = Trust::Until(sent + TRUSTED);
    }

    /// Trusts the set without limit: no other process writes.
    pub(super) fn trust_always(&self) {
        self.write_state().until = Trust::Always;
    }

    /// Requests a reload of the set, because notifications may have been missed.
    pub(super) fn reload(&self) {
        self.write_state().wanted += 1;
        self.stale.notify_one();
    }

    /// Loads the set whenever a reload is requested.
    pub(super) async fn load(self: Arc<Self>, links: Arc<dyn Links>) {
        loop {
            let (wanted, read) = {
                let state = self.read_state();
                (state.wanted, state.read)
            };
            if wanted == read {
                self.stale.notified().await;
            } else if let Err(error) = self.read_all(&*links).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "read hand-picked codes");
                sleep(PAUSE).await;
            } else {
                self.write_state().read = wanted;
            }
        }
    }

    async fn read_all(&self, links: &dyn Links) -> Result<(), store::StoreError> {
        let mut after = None;
        loop {
            let page = links.unminted_slugs(after, PAGE).await?;
            page.iter().for_each(|id| self.add(*id));
            if page.len() < PAGE || self.read_state().ids.len() >= IDS_MAX {
                return Ok(());
            }
            after = page.last().copied();
        }
    }

    fn read_state(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().expect("no code panics while it holds this lock")
    }

    fn write_state(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use codes::KeyspaceIndex;

    use super::*;

    #[test]
    fn an_absence_is_believed_only_when_all_was_read_and_the_last_news_is_fresh() {
        let (picked, now) = (UnmintedSlugs::new(), Instant::now());
        let id = |number| LinkId::new(KeyspaceIndex::new(1).unwrap(), number);
        picked.trust(now);
        assert!(!picked.rules_out(id(1), now), "nothing was read");
        picked.reload();
        assert!(!picked.rules_out(id(1), now), "it is being read");
        picked.write_state().read = 1;
        assert!(picked.rules_out(id(1), now));
        picked.add(id(1));
        assert!(!picked.rules_out(id(1), now));
        assert!(picked.rules_out(id(2), now));
        assert!(!picked.rules_out(id(2), now + TRUSTED), "the news is old");
        picked.trust(now + TRUSTED);
        assert!(picked.rules_out(id(2), now + TRUSTED));
        picked.reload();
        assert!(!picked.rules_out(id(2), now + TRUSTED), "something was missed");
    }
}
