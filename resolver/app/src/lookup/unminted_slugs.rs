//! Hand-picked codes that could have been minted, and were not yet: what the ceiling does not know of.
//!
//! 1. A set of ids, read from the store when this process begins to hear of changes, and told of each one from then on.
//! 2. It says "absent" only while it is trusted: for [`TRUSTED`] after the last question to the connection that tells was *sent*, once all that
//!    was told before the answer is in the set. Whoever picks such a code answers that long after its COMMIT. So when a client knows the
//!    code, every question that is still trusted was sent after the COMMIT, and its answer came after the news.
//! 3. With more ids than fit it is not trusted, and the store is asked: slower, never wrong.

use std::{
    collections::HashSet,
    sync::{Arc, RwLock},
    time::Duration,
};

use codes::LinkId;
use store::Links;
use supply::guard::{self, Guard};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// How long the set is believed without news.
pub const TRUSTED: Duration = Duration::from_millis(250);
/// Ids that are kept; 16 bytes each.
const IDS_MAX: usize = 1_000_000;
/// Ids per page of the first reading.
const PAGE: usize = 10_000;
const PAUSE: Duration = Duration::from_secs(1);

/// The set.
pub(super) struct Picked {
    /// A std lock: it is held for a few instructions and never across an await. Only codes past the ceiling come here.
    state: RwLock<State>,
    stale: Notify,
}

struct State {
    ids: HashSet<LinkId>,
    /// Which reading from the store is wanted, and which was the last that came to its end.
    wanted: u64,
    read: u64,
    until: Trust,
}

enum Trust {
    Until(Instant),
    Always,
}

impl Picked {
    /// Knows nothing.
    pub(super) fn new() -> Self {
        let state = State { ids: HashSet::new(), wanted: 0, read: 0, until: Trust::Until(Instant::now()) };
        Self { state: RwLock::new(state), stale: Notify::new() }
    }

    /// Whether surely nobody has picked the code of this id.
    pub(super) fn rules_out(&self, id: LinkId, now: Instant) -> bool {
        let state = self.read_state();
        let is_trusted = match state.until {
            Trust::Until(until) => now < until || !guard::is_on(Guard::Trusted),
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

    /// Believes the set for a while after a question that was sent then.
    pub(super) fn trust(&self, sent: Instant) {
        self.write_state().until = Trust::Until(sent + TRUSTED);
    }

    /// Believes the set for ever: nobody else writes.
    pub(super) fn trust_always(&self) {
        self.write_state().until = Trust::Always;
    }

    /// Something may have been missed: the set is read again.
    pub(super) fn reload(&self) {
        self.write_state().wanted += 1;
        self.stale.notify_one();
    }

    /// Reads the set whenever it has to be.
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
        let (picked, now) = (Picked::new(), Instant::now());
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
