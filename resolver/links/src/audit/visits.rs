//! Entries about deletions of visits.

use serde_json::{Value, json};

use super::{
    Action,
    state::{DOMAIN, SLUG},
};
use crate::Link;

/// An entry that is not in the log yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Kind of change.
    pub action: Action,
    /// Object of the change, as in [`Entry`](super::Entry).
    pub subject: String,
    /// Result of the change, as JSON.
    pub details: Value,
}

impl NewEntry {
    /// Makes the entry of a deletion of a link's visits.
    pub fn of_link_visits(link: &Link, deleted: u64) -> Self {
        let domain = link.details().domain;
        Self {
            action: Action::DeleteLinkVisits,
            subject: link.id.get().to_string(),
            details: json!({ SLUG: link.slug(), DOMAIN: domain, "deletedVisits": deleted }),
        }
    }

    /// Makes the entry of a deletion of the visits that no link redirected.
    pub fn of_orphan_visits(deleted: u64) -> Self {
        let details = json!({ "deletedVisits": deleted });
        Self { action: Action::DeleteOrphanVisits, subject: "orphans".to_owned(), details }
    }

    /// Makes the entry of an erasure of visits by their addresses. `is_done` says whether the
    /// number is final. The log is kept for ever, so `network` is not the whole address of a
    /// person.
    pub fn of_erasure(network: String, deleted: u64, is_done: bool) -> Self {
        let details = json!({ "deletedVisits": deleted, "isComplete": is_done });
        Self { action: Action::EraseVisits, subject: network, details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Details, DomainId, Slug, audit::separate_name};

    #[test]
    fn a_deletion_of_visits_is_told_with_the_name_of_the_link() {
        let details = Details {
            slug: Slug::parse("x").ok(),
            domain: Some(DomainId::from_stored(3)),
            ..Details::default()
        };
        let link = Link::sample(details);
        let entry = NewEntry::of_link_visits(&link, 5);
        let told = separate_name(&entry.subject, Some(&entry.details));
        assert_eq!((told.id, told.slug.as_deref(), told.domain.get()), (Some(link.id), Some("x"), 3));
        assert_eq!(told.fields, json!({ "deletedVisits": 5 }));
    }
}
