//! Deletes a link. Its code stays with it and is never minted again; a custom slug becomes free.

use links::{Refusal, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, LinkService,
    authorize::require,
    edit_link::{LOOKUPS, Target},
};

impl LinkService {
    /// Deletes the link with the target's name, if it is at one of the target's versions. The link
    /// is looked up as for an edit.
    pub fn delete_link<'a>(&'a self, target: &'a Target, by: &'a Grant) -> Answer<'a, ()> {
        Box::pin(async move {
            require(by, Scope::Delete)?;
            for _ in 0..LOOKUPS {
                let link = self.find_link(&target.name, by).await?;
                let precondition = target.precondition(&link);
                let turn = self.turns.write(by.id).await?;
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
        })
    }
}
