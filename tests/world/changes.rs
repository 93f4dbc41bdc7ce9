//! Clients that change links: they edit, move, rename, delete and restore them as the API does.

use std::time::Duration;

use codes::LinkId;
use links::{DomainId, Edit, LongUrl, Precondition, Record, Relocation, Slug};
use lookup::freshness::AWAY;
use tokio::{join, time::Instant};

use super::{
    book::Acknowledged,
    node::Ends,
    rng::Rng,
    shared::{BY, Shared},
};

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
        // Nothing that the process has learned of is undone, whatever fails.
        let learned = ends.trouble.known_before(id, began).unwrap_or(self.began);
        let from = if leads_to.is_none() {
            // Absences are not cached (I8), so the link must have been gone at some time during the
            // lookup.
            began
        } else if ends.trouble.was_within(TROUBLED) {
            learned
        } else {
            known.or(began.checked_sub(SHOWN)).unwrap_or(self.began).max(learned)
        };
        let held = self.common.database.held(id, leads_to, from);
        // Of several states that the answer fits, the process may know the first only.
        let first = if leads_to.is_none() { began } else { self.began };
        if let Some(state_of) = self.common.database.first_held(id, leads_to, first) {
            ends.trouble.note_known(id, state_of);
        }
        held
    }

    /// Edits, moves, renames, deletes or restores an acknowledged link.
    pub(super) async fn change(&self, ends: &Ends, rng: &mut Rng) {
        let link = self.book().some_link(rng);
        let Some(link) = link else { return };
        self.book().change(&link);
        let away = self.common.database.away().filter(|_| link.name.domain.is_default() && !link.is_picked);
        if self.common.database.is_gone(link.id) {
            self.bring_back(ends, &link).await;
        } else if let Some(away) = away.filter(|_| rng.permille(150)) {
            if rng.permille(500) {
                self.rename(ends, &link).await;
            } else {
                self.send_away(ends, &link, away).await;
            }
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
        if edited.is_ok() {
            self.count(|outcome| outcome.changed += 1);
            // A lookup in the process that made the edit must not return an older state.
            let made = self.common.database.led_there_since(link.id, &url);
            if let Some(made) = made {
                ends.trouble.note_known(link.id, made);
            }
            self.look_from(ends, link, made.map(|at| at + Duration::from_nanos(1))).await;
        }
    }

    /// Deletes a link with a minted code. A custom slug would be free for another link.
    async fn delete(&self, ends: &Ends, link: &Acknowledged) {
        let began = Instant::now();
        let Ok(deleted) = ends.store.delete(link.id, &Precondition::default(), BY).await else { return };
        ends.lookup.changed(link.id);
        if deleted.is_ok() {
            if let Some(gone) = self.common.database.first_held(link.id, None, began) {
                ends.trouble.note_known(link.id, gone);
            }
            self.count(|outcome| outcome.changed += 1);
        }
    }

    /// Moves a link with a minted code to another domain.
    async fn send_away(&self, ends: &Ends, link: &Acknowledged, away: DomainId) {
        if self.relocate(ends, link, away, &link.name.text).await.is_some() {
            self.count(|outcome| outcome.moved += 1);
        }
    }

    /// Gives a link with a minted code another name, and looks it up under that.
    async fn rename(&self, ends: &Ends, link: &Acknowledged) {
        let name = format!("renamed/{}", link.name.text);
        if let Some(record) = self.relocate(ends, link, DomainId::DEFAULT, &name).await {
            ends.lookup.wait_until_shown(record.link.id).await;
            self.count(|outcome| outcome.renamed += 1);
            self.look_renamed(ends, link, name).await;
        }
    }

    async fn relocate(
        &self,
        ends: &Ends,
        link: &Acknowledged,
        domain: DomainId,
        name: &str,
    ) -> Option<Record> {
        let number = Some(link.id).filter(|_| name == link.name.text);
        let (name, former) = (Slug::parse(name).ok()?, Slug::parse(&link.name.text).ok()?);
        let relocation = Relocation { domain, name, former, number, keyspaces: ends.mint.keyspaces() };
        let edit = Edit { relocation: Some(relocation), ..Edit::default() };
        let edited = ends.store.edit(link.id, &edit, BY).await.ok()?;
        ends.lookup.changed(link.id);
        edited.ok()
    }

    /// Restores a deleted link, or gives one its address back, during a lookup. A lookup after that
    /// finds it.
    async fn bring_back(&self, ends: &Ends, link: &Acknowledged) {
        let bring_back = async {
            let restored =
                ends.store.restore(link.id, &Precondition::default(), ends.mint.keyspaces(), BY).await;
            let Ok(restored) = restored else { return };
            ends.lookup.changed(link.id);
            let record = match restored {
                Ok(record) => Some(record),
                Err(_) if self.common.database.away().is_some() => {
                    self.relocate(ends, link, DomainId::DEFAULT, &link.name.text).await
                }
                Err(_) => None,
            };
            if let Some(record) = record {
                ends.lookup.wait_until_shown(record.link.id).await;
                self.count(|outcome| outcome.changed += 1);
                self.look(ends, link).await;
            }
        };
        join!(bring_back, self.look(ends, link));
    }
}
