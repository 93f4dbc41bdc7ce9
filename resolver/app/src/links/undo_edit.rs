//! Undoes an edit of a link by its entry in the audit log. The undo is an edit as well, with an
//! entry of its own, so that it can be undone in turn.

use codes::LinkId;
use links::{
    Edit, Link, Record,
    api_key::Grant,
    audit::{Action, Entry, EntryFilter, NotUndone},
    scope::Scope,
};

use crate::{
    Answer, AppError, Field, FieldErrors, LinkService, authorize::require, edit_link::Target,
    find_link::LinkName,
};

impl LinkService {
    /// Undoes the edit of this entry, or the last edit of the target. Nothing is undone if one of
    /// its fields was changed again since, or the link is edited meanwhile.
    pub fn undo_edit<'a>(
        &'a self,
        target: &'a Target,
        entry: Option<i64>,
        wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Edit)?;
            wrong.finish()?;
            let record = self.stored_record(&target.name, by).await?;
            let (id, version) = (record.link.id, record.link.version());
            if target.versions.as_ref().is_some_and(|versions| !versions.contains(&version)) {
                return Err(AppError::Superseded);
            }
            let edit = self.edit_of(id, entry, by).await?.undo(&record)?;
            self.check_former_targets(&edit)?;
            let target = Target { name: target.name.clone(), versions: Some(vec![version]) };
            let edit_for = |link: &Link| {
                // Another link may have the name by now, at the same version.
                if link.id == id { self.check_against(link, &edit) } else { Err(self.no_link(&target.name)) }
            };
            self.change_found(&target, edit_for, by).await
        })
    }

    /// Returns a link as it is stored: the cached one may be that of before the last edit.
    async fn stored_record(&self, name: &LinkName, by: &Grant) -> Result<Record, AppError> {
        let id = self.find_link(name, by).await?.id;
        let link = self.lookup.read_fresh(id).await.map_err(|_| AppError::Unavailable)?;
        let link = link.filter(|link| !link.is_deleted() && by.sees(link));
        let link = link.ok_or_else(|| self.no_link(name))?;
        let _turn = self.turns.writes.take(by.id).await?;
        Ok(Record { tags: self.store.tags_of(id).await?, link: Link::clone(&link) })
    }

    /// Returns the entry with this number if it is about the link, or that of its last edit.
    async fn edit_of(&self, link: LinkId, entry: Option<i64>, by: &Grant) -> Result<Entry, AppError> {
        let filter = match entry {
            Some(id) => EntryFilter { before: Some(id.saturating_add(1)), ..EntryFilter::default() },
            None => EntryFilter { action: Some(Action::EditLink), ..EntryFilter::default() },
        };
        let found = self.entries_of(link, filter, 1, by).await?.pop();
        let found = found.filter(|found| entry.is_none_or(|id| found.id == id));
        found.ok_or(AppError::NotUndone(NotUndone::NoEntry))
    }

    /// Rejects an edit, such as an undo, whose long URLs were checked earlier and which the target
    /// rules deny by now.
    pub(crate) fn check_former_targets(&self, edit: &Edit) -> Result<(), AppError> {
        let rules = edit.details.rules.iter().flatten().map(|rule| &rule.long_url);
        self.check_targets(Field::LongUrl.name(), edit.long_url.iter().chain(rules))?;
        self.check_targets(Field::ExpiredUrl.name(), edit.details.expired_url.iter().flatten())?;
        let previews = edit.details.preview.iter().flatten();
        self.check_targets(Field::Preview.name(), previews.filter_map(|preview| preview.image.as_ref()))
    }
}
