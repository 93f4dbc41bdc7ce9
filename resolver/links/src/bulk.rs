//! Changes of many links at a time: which links a change applies to, and its effect on each.
//!
//! The rules are those of a change of one link (`lifecycle.rs`). A repeated change leaves a link as
//! it is, unless others have changed it meanwhile, so that a call may be repeated as a whole.

use jiff::Timestamp;

use crate::{Edit, Link, Precondition, Record, Refusal, ScheduledFields, TAGS_MAX, Tag, api_key::ApiKeyId};

/// A change of many links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkChange {
    /// An edit.
    Edit(Box<BulkEdit>),
    /// A deletion.
    Delete,
}

/// An edit of many links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkEdit {
    /// The edit of each link. Its precondition has no meaning here, because each link has its own.
    pub edit: Edit,
    /// Tags that each link gets beside those that it has.
    pub add_tags: Vec<Tag>,
    /// Tags that each link loses.
    pub remove_tags: Vec<Tag>,
}

/// Why a link of many was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkRefusal {
    /// As for a change of this link alone.
    Refused(Refusal),
    /// A later release has stored what the change would lose.
    LaterRelease,
    /// The link would have more than [`TAGS_MAX`] tags.
    TooManyTags,
}

impl BulkChange {
    /// Returns about by how many bytes each link may grow.
    pub fn growth(&self) -> u64 {
        match self {
            Self::Edit(edit) => edit.growth(),
            Self::Delete => 0,
        }
    }

    /// Applies the change to a link with these tags, if it is the one of the precondition. Returns
    /// `None` if that leaves the link as it is. A deleted link has no tags.
    pub fn apply(
        &self,
        link: &Link,
        tags: &[Tag],
        of: &Precondition,
        (now, by): (Timestamp, ApiKeyId),
    ) -> Result<Option<Record>, BulkRefusal> {
        if link.details().is_opaque() {
            return Err(BulkRefusal::LaterRelease);
        }
        match self {
            Self::Edit(edit) => edit.apply(link, tags, of, (now, by)),
            Self::Delete => {
                link.check_deletion(of).map_err(BulkRefusal::Refused)?;
                let link = link.clone().deleted(tags.to_vec(), now, by);
                Ok(Some(Record { link, tags: Vec::new() }))
            }
        }
    }
}

impl BulkEdit {
    /// Returns about by how many bytes each link may grow: as many as the fields have as text.
    fn growth(&self) -> u64 {
        let tags: usize = self.add_tags.iter().map(|tag| tag.as_str().len()).sum();
        (ScheduledFields::of(&self.edit).stored().len() + tags) as u64
    }

    fn apply(
        &self,
        link: &Link,
        tags: &[Tag],
        of: &Precondition,
        (now, by): (Timestamp, ApiKeyId),
    ) -> Result<Option<Record>, BulkRefusal> {
        if link.is_deleted() || !of.is_of(link) {
            return Err(BulkRefusal::Refused(Refusal::Absent));
        }
        if self.edit.replaces_unknown(link.details()) {
            return Err(BulkRefusal::LaterRelease);
        }
        let after = self.tags_after(tags);
        if after.len() > TAGS_MAX.max(tags.len()) {
            return Err(BulkRefusal::TooManyTags);
        }
        let keeps_tags = after.len() == tags.len() && tags.iter().all(|tag| after.contains(tag));
        if keeps_tags && self.edit.leaves(link, now, by) {
            return Ok(None);
        }
        Ok(Some(Record { link: self.edit.apply(link.clone(), now, by), tags: after }))
    }

    /// Returns the tags of a link that had these, sorted.
    fn tags_after(&self, tags: &[Tag]) -> Vec<Tag> {
        let kept = self.edit.tags.as_deref().unwrap_or(tags);
        let kept = kept.iter().filter(|tag| !self.remove_tags.contains(*tag));
        let mut after: Vec<Tag> = kept.chain(&self.add_tags).cloned().collect();
        after.sort_unstable();
        after.dedup();
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Details, DetailsEdit};

    const AT: (Timestamp, ApiKeyId) = (Timestamp::UNIX_EPOCH, ApiKeyId(7));

    fn tags(names: &str) -> Vec<Tag> {
        names.split_whitespace().map(Tag::from_stored).collect()
    }

    fn tagging(add: &str, remove: &str) -> BulkChange {
        let edit = BulkEdit { add_tags: tags(add), remove_tags: tags(remove), ..BulkEdit::default() };
        BulkChange::Edit(Box::new(edit))
    }

    fn disabling() -> BulkChange {
        let details = DetailsEdit { disabled: Some(true), ..DetailsEdit::default() };
        let edit = Edit { details, ..Edit::default() };
        BulkChange::Edit(Box::new(BulkEdit { edit, ..BulkEdit::default() }))
    }

    #[test]
    fn tags_are_added_and_removed_beside_those_that_a_link_has() {
        let link = Link::sample(Details::default());
        let applied = |change: &BulkChange, had: &str| {
            change.apply(&link, &tags(had), &Precondition::of(&link), AT).unwrap().map(|after| after.tags)
        };
        assert_eq!(applied(&tagging("c a", ""), "b"), Some(tags("a b c")));
        assert_eq!(applied(&tagging("c", "b x"), "b a"), Some(tags("a c")));
        assert_eq!(applied(&tagging("a", "x"), "b a"), None, "it has all of them already");
        let replaced = Edit { tags: Some(tags("x y")), ..Edit::default() };
        let replaced = BulkChange::Edit(Box::new(BulkEdit { edit: replaced, ..BulkEdit::default() }));
        assert_eq!(applied(&replaced, "a b"), Some(tags("x y")));
        assert_eq!(applied(&replaced, "y x"), None);
    }

    #[test]
    fn a_link_gets_no_more_tags_than_it_may_have() {
        let link = Link::sample(Details::default());
        let had: Vec<Tag> = (0..TAGS_MAX).map(|number| Tag::from_stored(&format!("t{number}"))).collect();
        let apply = |change: BulkChange| change.apply(&link, &had, &Precondition::of(&link), AT);
        assert_eq!(apply(tagging("more", "")), Err(BulkRefusal::TooManyTags));
        assert_eq!(apply(tagging("more", "t1")).unwrap().unwrap().tags.len(), TAGS_MAX);
    }

    #[test]
    fn a_repeated_change_leaves_a_link_as_it_is_and_a_deletion_is_refused() {
        let link = Link::sample(Details::default());
        let of = Precondition::of(&link);
        for change in [disabling(), tagging("a", "")] {
            let after = change.apply(&link, &[], &of, AT).unwrap().unwrap();
            assert_eq!(after.link.version(), 1);
            assert_eq!(change.apply(&after.link, &after.tags, &of, AT), Ok(None), "{change:?}");
        }
        let gone = BulkChange::Delete.apply(&link, &tags("a"), &of, AT).unwrap().unwrap();
        assert_eq!((gone.link.is_deleted(), gone.tags.len()), (true, 0));
        assert_eq!(gone.link.details().deleted_tags, tags("a"));
        for change in [BulkChange::Delete, disabling()] {
            let again = change.apply(&gone.link, &[], &of, AT);
            assert_eq!(again, Err(BulkRefusal::Refused(Refusal::Absent)));
        }
    }

    #[test]
    fn a_link_grows_by_the_fields_and_tags_that_it_gets() {
        let long = "x".repeat(1_000);
        let details = DetailsEdit { description: Some(Some(long.clone())), ..DetailsEdit::default() };
        let described = Edit { title: Some(Some(long.clone())), details, ..Edit::default() };
        let described = BulkEdit { edit: described, add_tags: tags(&long), ..BulkEdit::default() };
        let growth = BulkChange::Edit(Box::new(described)).growth();
        assert!((3_000..3_100).contains(&growth), "{growth}");
        assert!(tagging("", &long).growth() < 10);
        assert_eq!(BulkChange::Delete.growth(), 0);
    }

    #[test]
    fn another_link_and_one_of_a_later_release_are_refused() {
        let link = Link::sample(Details::default());
        let later = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(1);
        let of = Precondition { created_at: Some(later), ..Precondition::default() };
        for change in [BulkChange::Delete, disabling()] {
            let refused = change.apply(&link, &[], &of, AT);
            assert_eq!(refused, Err(BulkRefusal::Refused(Refusal::Absent)));
        }
        let mut unknown = Details::default();
        unknown.others.insert("disabled".to_owned(), serde_json::json!("until noon"));
        let link = Link::sample(unknown);
        let refused = disabling().apply(&link, &[], &Precondition::of(&link), AT);
        assert_eq!(refused, Err(BulkRefusal::LaterRelease));
    }
}
