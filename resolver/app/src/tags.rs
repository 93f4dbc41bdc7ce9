//! Lists, renames and deletes tags.

use links::{Tag, api_key::Grant, scope::Scope};
use store::{Renamed, TagCount};

use super::{
    AppError, FieldErrors, LinkService,
    authorize::{require, visible},
};

/// Maximum number of tags in one answer.
const TAGS_MAX: usize = 100_000;

impl LinkService {
    /// Returns the tags of visible links whose names contain a text, sorted by name.
    pub async fn tags(&self, search: Option<&str>, by: &Grant) -> Result<Vec<TagCount>, AppError> {
        require(by, Scope::Read)?;
        if search.is_some_and(|text| text.contains('\0')) {
            return Err(AppError::invalid("(the query)", "expected no NUL"));
        }
        let search = search.map(str::to_lowercase);
        let _turn = self.turns.query(by.id).await?;
        Ok(self.catalog.tags(search.as_deref(), TAGS_MAX, &visible(by)).await?)
    }

    /// Checks that a visible link has the tag.
    pub async fn find_tag(&self, name: &str, by: &Grant) -> Result<(), AppError> {
        let missing = || AppError::NoTag { tag: name.to_owned() };
        let tag = Tag::exactly(name).map_err(|_| missing())?;
        let _turn = self.turns.query(by.id).await?;
        if self.catalog.has_tag(&tag, &visible(by)).await? { Ok(()) } else { Err(missing()) }
    }

    /// Renames a tag on all links. `wrong` holds the fields that the adapter could not read.
    pub async fn rename_tag(
        &self,
        old: Option<&str>,
        new: Option<&str>,
        mut wrong: FieldErrors,
        by: &Grant,
    ) -> Result<(), AppError> {
        require(by, Scope::Edit)?;
        may_change_tags(by, "rename")?;
        let mut tag = |field, name: Option<&str>| {
            let name = name.ok_or_else(|| "expected a string".to_owned());
            let read = name.and_then(|name| Tag::exactly(name).map_err(|error| error.to_string()));
            wrong.note(field, read)
        };
        let (old, new) = (tag("oldName", old), tag("newName", new));
        wrong.finish()?;
        let (Some(old), Some(new)) = (old, new) else { return Err(AppError::Internal) };
        let _turn = self.turns.write(by.id).await?;
        match self.catalog.rename_tag(&old, &new, by.id).await? {
            Renamed::Done => Ok(()),
            Renamed::Absent => Err(AppError::NoTag { tag: old.to_string() }),
            Renamed::Taken => Err(AppError::TagConflict { old: old.to_string(), new: new.to_string() }),
        }
    }

    /// Removes tags from all links. Unknown tags are not an error.
    pub async fn delete_tags<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        by: &Grant,
    ) -> Result<(), AppError> {
        require(by, Scope::Delete)?;
        may_change_tags(by, "delete")?;
        let tags: Vec<Tag> = names.filter_map(|name| Tag::exactly(name).ok()).collect();
        let _turn = self.turns.write(by.id).await?;
        self.catalog.delete_tags(&tags, by.id).await?;
        Ok(())
    }
}

/// Requires a key that sees all links, because tags belong to all links.
fn may_change_tags(by: &Grant, what: &'static str) -> Result<(), AppError> {
    if by.limits.hides_links() { Err(AppError::ForbiddenTags { what }) } else { Ok(()) }
}
