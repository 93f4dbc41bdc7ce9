//! Deletes a link, and restores it. Its code stays with it and is never minted again; a custom slug
//! becomes free.

use links::{Precondition, Record, Refusal, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, Field, LinkService,
    authorize::require,
    edit_link::{LOOKUPS, Target},
    find_link::LinkName,
    values::check_kept_slug,
};

impl LinkService {
    /// Deletes the link with the target's name, if it is at one of the target's versions. The link
    /// is looked up as for an edit.
    pub async fn delete_link(&self, target: &Target, by: &Grant) -> Result<(), AppError> {
        require(by, Scope::Delete)?;
        for _ in 0..LOOKUPS {
            let link = match self.find_link(&target.name, by).await {
                Err(error @ AppError::NoLink(_)) if self.store.is_distributed() => {
                    self.tell_deletion(&target.name, by).await;
                    return Err(error);
                }
                found => found?,
            };
            let versions = target.versions.clone();
            let precondition = Precondition { versions, ..Precondition::of(&link) };
            let turn = self.turns.writes.take(by.id).await?;
            let deleted = self.store.delete(link.id, &precondition, by.id).await?;
            drop(turn);
            self.lookup.changed(link.id);
            match deleted {
                Ok(()) => return Ok(()),
                // A deletion needs no name, so none is taken.
                Err(Refusal::Absent | Refusal::Taken) => {}
                Err(Refusal::Superseded) => return Err(AppError::Superseded),
                Err(Refusal::Blocked) => return Err(AppError::Blocked),
            }
        }
        Err(self.no_link(&target.name))
    }

    /// Tells of a deletion again. Perhaps a node has stored it and nobody was told, and this call
    /// repeats the one that did it.
    async fn tell_deletion(&self, name: &LinkName, by: &Grant) {
        let Ok(link) = self.find_deleted(name, by).await else { return };
        let Ok(_turn) = self.turns.writes.take(by.id).await else { return };
        // It is refused, because the link is deleted at this version.
        let precondition = Precondition { versions: Some(vec![link.version()]), ..Precondition::of(&link) };
        let _ = self.store.delete(link.id, &precondition, by.id).await;
        self.lookup.changed(link.id);
    }

    /// Restores the most recently deleted link with the target's name, if it is at one of the
    /// target's versions, with its tags and limits, at a new version. A key that may delete a link
    /// may undo that.
    pub fn restore_link<'a>(&'a self, target: &'a Target, by: &'a Grant) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Delete)?;
            let Target { name, versions } = target;
            let link = self.find_deleted(name, by).await?;
            check_kept_slug(&link)?;
            // The target rules may have changed since the link was created.
            let targets = link.rules().iter().map(|rule| &rule.long_url).chain([&link.long_url]);
            self.check_targets(Field::LongUrl.name(), targets)?;
            let keyspaces = self.lookup.mint.keyspaces();
            let _turn = self.turns.writes.take(by.id).await?;
            let precondition = Precondition { versions: versions.clone(), ..Precondition::of(&link) };
            let restored = self.store.restore(link.id, &precondition, keyspaces, by.id).await?;
            self.lookup.changed(link.id);
            match restored {
                Ok(record) => {
                    self.lookup.wait_until_shown(record.link.id).await;
                    Ok(record)
                }
                Err(Refusal::Taken) => Err(self.slug_taken(&name.code, link.domain())),
                Err(Refusal::Superseded) => Err(AppError::Superseded),
                // A block does not hold it up.
                Err(Refusal::Absent | Refusal::Blocked) => Err(self.no_link(name)),
            }
        })
    }
}
