//! Restores the most recently deleted link with a code or slug.
//!
//! The use case requires the scope `delete`: a key that may delete a link may undo that.

use links::{Precondition, Record, Refusal, api_key::Grant, scope::Scope};

use crate::{Answer, Field, LinkService, authorize::require, find_link::LinkName, values::check_kept_slug};

impl LinkService {
    /// Restores a link with its tags and limits, at a new version.
    pub fn restore_link<'a>(&'a self, name: &'a LinkName, by: &'a Grant) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Delete)?;
            let link = self.find_deleted(name, by).await?;
            check_kept_slug(&link)?;
            // The target rules may have changed since the link was created.
            let targets = link.rules().iter().map(|rule| &rule.long_url).chain([&link.long_url]);
            self.check_targets(Field::LongUrl.name(), targets)?;
            let keyspaces = self.lookup.mint.keyspaces();
            let _turn = self.turns.write(by.id).await?;
            let precondition = Precondition::of(&link);
            let restored = self.store.restore(link.id, &precondition, keyspaces, by.id).await?;
            self.lookup.changed(link.id);
            match restored {
                Ok(record) => {
                    self.lookup.wait_until_shown(record.link.id).await;
                    Ok(record)
                }
                Err(Refusal::Taken) => Err(self.slug_taken(&name.code, link.domain())),
                // A restoration is for no version, and a block does not hold it up.
                Err(Refusal::Absent | Refusal::Superseded | Refusal::Blocked) => Err(self.no_link(name)),
            }
        })
    }
}
