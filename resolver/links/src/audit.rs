//! Audit log: which API key changed what, and when.

mod state;
mod undo;

use codes::LinkId;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{DomainId, Edit, Link, api_key::ApiKeyId, webhook::EventKind};
use state::{CHANGED, DOMAIN, SLUG};

pub use state::{
    LinkEntry, change, domain_change, domain_name, note_move, note_rename, separate_name, state,
    without_hashes,
};
pub use undo::NotUndone;
pub(crate) use undo::set as set_field;

codes::named_values! {
    /// Kind of change that an entry records, with its name in the log and in the database.
    pub enum Action {
        /// A link was edited.
        EditLink => "edit-link",
        /// A link was deleted.
        DeleteLink => "delete-link",
        /// A deleted link was restored.
        RestoreLink => "restore-link",
        /// An operator took a link down.
        BlockLink => "block-link",
        /// An operator lifted the takedown of a link.
        UnblockLink => "unblock-link",
        /// A tag was renamed.
        RenameTag => "rename-tag",
        /// Tags were deleted.
        DeleteTag => "delete-tag",
        /// A domain was added: for an API key, with its first link, or by an import.
        AddDomain => "add-domain",
        /// A domain was edited.
        EditDomain => "edit-domain",
        /// A domain was removed.
        RemoveDomain => "remove-domain",
        /// A target rule was added or changed.
        SetTarget => "set-target",
        /// A target rule was removed.
        RemoveTarget => "remove-target",
        /// An API key was created.
        CreateKey => "create-key",
        /// An API key was revoked.
        RevokeKey => "revoke-key",
        /// An API key got a new secret.
        RotateKey => "rotate-key",
        /// A webhook was created.
        CreateWebhook => "create-webhook",
        /// A webhook was edited, enabled or disabled.
        EditWebhook => "edit-webhook",
        /// A webhook got a new secret.
        RotateWebhook => "rotate-webhook",
        /// A webhook was removed.
        RemoveWebhook => "remove-webhook",
        /// A webhook was disabled, because its receiver is gone or has failed for long.
        DisableWebhook => "disable-webhook",
        /// The visits of a link were deleted.
        DeleteLinkVisits => "delete-link-visits",
        /// The visits that no link redirected were deleted.
        DeleteOrphanVisits => "delete-orphan-visits",
        /// The visits of an address were erased.
        EraseVisits => "erase-visits",
    }
}

/// A filter of entries of the log. The default matches all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only entries before this one.
    pub before: Option<i64>,
    /// Only this action.
    pub action: Option<Action>,
    /// Only entries of the API key of this name; an empty name stands for the operator.
    pub by_name: Option<String>,
    /// Only entries about this object.
    pub object: Option<Object>,
    /// Only entries from this time on.
    pub since: Option<Timestamp>,
    /// Only entries until this time.
    pub until: Option<Timestamp>,
}

/// An object as people name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The name, for entries that are not about links; empty if only links are meant.
    pub name: String,
    /// The links that have the name, or had it.
    pub links: Vec<LinkId>,
}

impl Action {
    /// Returns the kind of an edit.
    pub fn of_edit(edit: &Edit) -> Self {
        match edit.block {
            None => Self::EditLink,
            Some(Some(_)) => Self::BlockLink,
            Some(None) => Self::UnblockLink,
        }
    }

    /// Returns `true` if an entry of this kind is about a link. Its subject is then the link's id.
    pub fn is_of_link(self) -> bool {
        matches!(self, Self::DeleteLinkVisits) || EventKind::of(self).is_some()
    }
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Entry number, ascending with time.
    pub id: i64,
    /// Time of the change.
    pub at: Timestamp,
    /// API key that made the change; 0 for the operator's command line.
    pub by: ApiKeyId,
    /// Name of that key.
    pub by_name: Option<String>,
    /// Kind of change: the name of an [`Action`].
    pub action: String,
    /// Object of the change: a link's id, a tag, a domain, a pattern, a key's name, a webhook's id,
    /// a network, or `orphans`.
    pub subject: String,
    /// Result of the change, as JSON.
    pub details: Option<Value>,
}

impl Entry {
    /// Returns `true` if the entry is about a link. Its subject is then the link's id.
    pub fn is_of_link(&self) -> bool {
        Action::parse(&self.action).is_some_and(Action::is_of_link)
    }

    /// Returns `true` if the link that the entry is about was on this domain before and after the
    /// change.
    pub fn stays_on(&self, domain: DomainId) -> bool {
        let details = self.details.as_ref();
        let moves = details.is_some_and(|details| !details[CHANGED][DOMAIN].is_null());
        !moves && separate_name(&self.subject, details).domain == domain
    }
}

/// An entry that is not in the log yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Kind of change.
    pub action: Action,
    /// Object of the change, as in [`Entry`].
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
    /// number is final. The log may be kept for ever, so `network` is not the whole address of a
    /// person.
    pub fn of_erasure(network: String, deleted: u64, is_done: bool) -> Self {
        let details = json!({ "deletedVisits": deleted, "isComplete": is_done });
        Self { action: Action::EraseVisits, subject: network, details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Details, Slug};

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
