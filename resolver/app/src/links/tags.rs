//! Lists, renames and deletes tags.

use std::collections::HashMap;

use links::{Tag, api_key::Grant, scope::Scope};
use store::{Renamed, TagCount, VisitTotals};

use crate::{
    Answer, AppError, FieldErrors, LinkService,
    authorize::{require, visible},
};

const TAGS_MAX: usize = 100_000;

impl LinkService {
    /// Returns the tags of visible links whose names contain a text. `order_by` is `tag`,
    /// `shortUrlsCount`, `visits` or `nonBotVisits`, optionally followed by `-ASC` or `-DESC`.
    pub fn tags<'a>(
        &'a self,
        search: Option<&'a str>,
        order_by: Option<&'a str>,
        by: &'a Grant,
    ) -> Answer<'a, Vec<TagCount>> {
        Box::pin(async move {
            require(by, Scope::Read)?;
            if search.is_some_and(|text| text.contains('\0')) {
                return Err(AppError::invalid("(the query)", "must not contain NUL"));
            }
            let order_by = order_by.unwrap_or_default();
            let turn = self.turns.queries.take(by.id).await?;
            let mut tags = self.store.tags(search, TAGS_MAX, &visible(by)).await?;
            drop(turn);
            let visits = if matches!(order_by.split('-').next(), Some("visits" | "nonBotVisits")) {
                let names: Vec<Tag> = tags.iter().map(|tag| tag.tag.clone()).collect();
                self.tag_visit_totals(&names, by).await?
            } else {
                HashMap::new()
            };
            sort(&mut tags, order_by, &visits);
            Ok(tags)
        })
    }

    /// Returns the names of at most `most` tags of visible links, for a choice.
    pub async fn tag_names(&self, most: usize, by: &Grant) -> Result<Vec<Tag>, AppError> {
        require(by, Scope::Read)?;
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.store.tag_names(most, &visible(by)).await?)
    }

    /// Returns the tag of this name, which a visible link has.
    pub async fn find_tag(&self, name: &str, by: &Grant) -> Result<Tag, AppError> {
        let missing = || AppError::NoTag(name.to_owned());
        let tag = Tag::exactly(name).map_err(|_| missing())?;
        let _turn = self.turns.queries.take(by.id).await?;
        self.store.tag_id(&tag, &visible(by)).await?.map(|_| tag).ok_or_else(missing)
    }

    /// Renames a tag on all links.
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
        let _turn = self.turns.writes.take(by.id).await?;
        match self.store.rename_tag(&old, &new, by.id).await? {
            Renamed::Done => Ok(()),
            Renamed::Absent => Err(AppError::NoTag(old.to_string())),
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
        let _turn = self.turns.writes.take(by.id).await?;
        self.store.delete_tags(&tags, by.id).await?;
        Ok(())
    }
}

/// Sorts tags that are in the order of their names. As in Shlink, an unknown field is the name, and
/// an unknown direction is ascending.
fn sort(tags: &mut [TagCount], order_by: &str, visits: &HashMap<Tag, VisitTotals>) {
    let (field, direction) = order_by.split_once('-').unwrap_or((order_by, "ASC"));
    let visits = |tag: &TagCount| visits.get(&tag.tag).copied().unwrap_or_default();
    match field {
        "shortUrlsCount" => tags.sort_by_key(|tag| tag.links),
        "visits" => tags.sort_by_key(|tag| visits(tag).total),
        "nonBotVisits" => tags.sort_by_key(|tag| visits(tag).non_bots()),
        _ => {}
    }
    if direction == "DESC" {
        tags.reverse();
    }
}

/// Requires a key that sees all links, because tags belong to all links.
fn may_change_tags(by: &Grant, what: &'static str) -> Result<(), AppError> {
    if by.limits.hides_links() { Err(AppError::ForbiddenTags(what)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_order_is_that_of_the_names() {
        let sorted = |order_by: &str| {
            let tag = |(name, links): (&str, u64)| TagCount { tag: Tag::from_stored(name), links };
            let mut tags: Vec<TagCount> = [("a", 2), ("b", 1), ("c", 2)].map(tag).into();
            let totals =
                |(name, total, bots)| (Tag::from_stored(name), VisitTotals { total, bots, last: None });
            let visits = [("a", 1, 1), ("b", 9, 8), ("c", 5, 0)].map(totals).into();
            sort(&mut tags, order_by, &visits);
            tags.iter().map(|tag| tag.tag.as_str().to_owned()).collect::<String>()
        };
        for (order_by, expected) in [
            ("", "abc"),
            ("tag", "abc"),
            ("tag-DESC", "cba"),
            ("shortUrlsCount", "bac"),
            ("shortUrlsCount-ASC", "bac"),
            ("shortUrlsCount-DESC", "cab"),
            ("shortUrlsCount-desc", "bac"),
            ("visits", "acb"),
            ("nonBotVisits-DESC", "cba"),
            ("visits-DESC", "bca"),
            ("colour", "abc"),
            ("colour-DESC", "cba"),
        ] {
            assert_eq!(sorted(order_by), expected, "{order_by}");
        }
    }
}
