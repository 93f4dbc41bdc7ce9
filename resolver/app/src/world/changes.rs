//! Clients that change links: they edit, delete and restore them as the API does.

use std::time::Duration;

use codes::LinkId;
use links::{Edit, LongUrl, Precondition};
use store::{Deleted, Edited, Restored};
use tokio::{join, time::Instant};

use super::{
    book::Acknowledged,
    node::Ends,
    rng::Rng,
    shared::{BY, Shared},
};
use crate::freshness::AWAY;

/// Delay after the COMMIT within which a change is visible everywhere: [`AWAY`] where the change
/// listener is disconnected, and the time that notifications take in the simulation.
pub(super) const SHOWN: Duration = AWAY.saturating_add(Duration::from_millis(500));
/// How long outdated answers are given after a read has failed: a second without a retry, or
/// [`AWAY`] for a replica's answer.
const TROUBLED: Duration = AWAY.saturating_add(Duration::from_secs(1));

impl Shared {
    /// Returns whether a changed link may lead to `leads_to`, as a lookup that began at `began`
    /// says. Returns `None` for a link that was never changed.
    ///
    /// `known` is an instant from which the visitor knows the link's state.
    pub(super) fn held(
        &self,
        ends: &Ends,
        id: LinkId,
        leads_to: Option<&str>,
        (began, known): (Instant, Option<Instant>),
    ) -> Option<bool> {
        let from = if leads_to.is_none() {
            // Absences are not cached (I8), so the link must have been deleted at some time during
            // the lookup.
            began
        } else if ends.trouble.was_within(TROUBLED) {
            self.began
        } else {
            known.or(began.checked_sub(SHOWN)).unwrap_or(self.began)
        };
        self.common.database.held(id, leads_to, from)
    }

    /// Edits, deletes or restores an acknowledged link.
    pub(super) async fn change(&self, ends: &Ends, rng: &mut Rng) {
        let link = self.book().some_link(rng);
        let Some(link) = link else { return };
        self.book().change(&link);
        if self.common.database.is_deleted(link.id) {
            self.restore(ends, &link).await;
        } else if rng.permille(250) && !link.is_picked {
            self.delete(ends, &link).await;
        } else {
            self.edit(ends, &link).await;
        }
    }

    async fn edit(&self, ends: &Ends, link: &Acknowledged) {
        let url = self.next_url("edited");
        let edit = Edit { long_url: Some(LongUrl::from_stored(url.as_str())), ..Edit::default() };
        // An edit without an answer does not evict the link in its own process, which is notified
        // like all others.
        let Ok(edited) = ends.store.edit(link.id, &edit, BY).await else { return };
        ends.lookup.changed(link.id);
        if matches!(edited, Edited::Done(_)) {
            self.count(|outcome| outcome.changed += 1);
            // A lookup in the process that made the edit must not return an older state.
            let made = self.common.database.led_there_since(link.id, &url);
            self.look_from(ends, link, made.map(|at| at + Duration::from_nanos(1))).await;
        }
    }

    /// Deletes a link with a minted code. A custom slug would be free for another link.
    async fn delete(&self, ends: &Ends, link: &Acknowledged) {
        let Ok(deleted) = ends.store.delete(link.id, &Precondition::default(), BY).await else { return };
        ends.lookup.changed(link.id);
        if deleted == Deleted::Done {
            self.count(|outcome| outcome.changed += 1);
        }
    }

    /// Restores a link during a lookup. A lookup after the restore finds it.
    async fn restore(&self, ends: &Ends, link: &Acknowledged) {
        let restore = async {
            let restored =
                ends.store.restore(link.id, &Precondition::default(), ends.creator.keyspaces(), BY).await;
            let Ok(restored) = restored else { return };
            ends.lookup.changed(link.id);
            if let Restored::Done(record) = restored {
                ends.creator.wait_until_shown(&record.link).await;
                self.count(|outcome| outcome.changed += 1);
                self.look(ends, link).await;
            }
        };
        join!(restore, self.look(ends, link));
    }
}
