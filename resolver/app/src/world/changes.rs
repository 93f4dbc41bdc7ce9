//! What clients do to links that are there: they edit, delete and restore them as the API does.

use std::time::Duration;

use codes::LinkId;
use links::{Edit, LongUrl, Precondition};
use store::{Deleted, Edited, Restored};
use tokio::{join, time::Instant};

use super::{
    Rng,
    book::Acknowledged,
    clients::{BY, Shared},
    node::Ends,
};
use crate::freshness::AWAY;

/// A change shows everywhere within this time of its COMMIT: [`AWAY`] where nobody tells of changes, and the
/// time that news take in this world.
pub(super) const SHOWN: Duration = AWAY.saturating_add(Duration::from_millis(500));
/// For so long after a read has failed old answers are given: a second without asking again, or [`AWAY`] of
/// what a copy has said.
const TROUBLED: Duration = AWAY.saturating_add(Duration::from_secs(1));

impl Shared {
    /// Whether a link that was changed may lead there, as a lookup says that began then, for somebody who knows what was in force
    /// from some time on; none of a link that never was.
    pub(super) fn held(
        &self,
        ends: &Ends,
        id: LinkId,
        leads_to: Option<&str>,
        (began, known): (Instant, Option<Instant>),
    ) -> Option<bool> {
        let from = if leads_to.is_none() {
            // No absence is remembered (I8): while the lookup was under way the link was deleted.
            began
        } else if ends.trouble.was_within(TROUBLED) {
            self.began
        } else {
            known.or(began.checked_sub(SHOWN)).unwrap_or(self.began)
        };
        self.common.database.held(id, leads_to, from)
    }

    /// Edits, deletes or restores a link that was acknowledged.
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
        // An editor that is not answered tells its own process nothing: that one hears of it as all others
        // do.
        let Ok(edited) = ends.store.edit(link.id, &edit, BY).await else { return };
        ends.lookup.changed(link.id);
        if matches!(edited, Edited::Done(_)) {
            self.count(|outcome| outcome.changed += 1);
            // Who is asked where it was made says nothing older.
            let made = self.common.database.led_there_since(link.id, &url);
            self.look_from(ends, link, made.map(|at| at + Duration::from_nanos(1))).await;
        }
    }

    /// Minted codes only: one that a person picked could be picked again.
    async fn delete(&self, ends: &Ends, link: &Acknowledged) {
        let Ok(deleted) = ends.store.delete(link.id, &Precondition::default(), BY).await else { return };
        ends.lookup.changed(link.id);
        if deleted == Deleted::Done {
            self.count(|outcome| outcome.changed += 1);
        }
    }

    /// Brings a link back while somebody looks whether it is there; whoever looks after that finds it.
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
