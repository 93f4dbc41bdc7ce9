//! Audit log: which API key changed what, and when.

mod domain;
mod state;
mod visits;

use codes::LinkId;
use jiff::Timestamp;
use serde_json::Value;

use crate::{Edit, api_key::ApiKeyId};

pub use domain::{domain_change, domain_name};
pub use state::{Told, change, note_move, state, tell};
pub use visits::NewEntry;

/// Kind of change that an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A link was edited.
    EditLink,
    /// A link was deleted.
    DeleteLink,
    /// A deleted link was restored.
    RestoreLink,
    /// An operator took a link down.
    BlockLink,
    /// An operator lifted the takedown of a link.
    UnblockLink,
    /// A tag was renamed.
    RenameTag,
    /// Tags were deleted.
    DeleteTag,
    /// A domain was added: for an API key, with its first link, or by an import.
    AddDomain,
    /// A domain was edited.
    EditDomain,
    /// A domain was removed.
    RemoveDomain,
    /// A target rule was added or changed.
    SetTarget,
    /// A target rule was removed.
    RemoveTarget,
    /// An API key was created.
    CreateKey,
    /// An API key was revoked.
    RevokeKey,
    /// An API key got a new secret.
    RotateKey,
    /// A webhook was created.
    CreateWebhook,
    /// A webhook was edited, enabled or disabled.
    EditWebhook,
    /// A webhook got a new secret.
    RotateWebhook,
    /// A webhook was removed.
    RemoveWebhook,
    /// A webhook was disabled, because its receiver is gone or has failed for long.
    DisableWebhook,
    /// The visits of a link were deleted.
    DeleteLinkVisits,
    /// The visits that no link redirected were deleted.
    DeleteOrphanVisits,
    /// The visits of an address were erased.
    EraseVisits,
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
    /// The name, for entries that are not about links.
    pub name: String,
    /// The links that have the name, or had it.
    pub links: Vec<LinkId>,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 23] = [
        Self::EditLink,
        Self::DeleteLink,
        Self::RestoreLink,
        Self::BlockLink,
        Self::UnblockLink,
        Self::RenameTag,
        Self::DeleteTag,
        Self::AddDomain,
        Self::EditDomain,
        Self::RemoveDomain,
        Self::SetTarget,
        Self::RemoveTarget,
        Self::CreateKey,
        Self::RevokeKey,
        Self::RotateKey,
        Self::CreateWebhook,
        Self::EditWebhook,
        Self::RotateWebhook,
        Self::RemoveWebhook,
        Self::DisableWebhook,
        Self::DeleteLinkVisits,
        Self::DeleteOrphanVisits,
        Self::EraseVisits,
    ];

    /// Returns the kind of an edit.
    #[must_use]
    pub fn of_edit(edit: &Edit) -> Self {
        match edit.block {
            None => Self::EditLink,
            Some(Some(_)) => Self::BlockLink,
            Some(None) => Self::UnblockLink,
        }
    }

    /// Returns the name of the action, in the log and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EditLink => "edit-link",
            Self::DeleteLink => "delete-link",
            Self::RestoreLink => "restore-link",
            Self::BlockLink => "block-link",
            Self::UnblockLink => "unblock-link",
            Self::RenameTag => "rename-tag",
            Self::DeleteTag => "delete-tag",
            Self::AddDomain => "add-domain",
            Self::EditDomain => "edit-domain",
            Self::RemoveDomain => "remove-domain",
            Self::SetTarget => "set-target",
            Self::RemoveTarget => "remove-target",
            Self::CreateKey => "create-key",
            Self::RevokeKey => "revoke-key",
            Self::RotateKey => "rotate-key",
            Self::CreateWebhook => "create-webhook",
            Self::EditWebhook => "edit-webhook",
            Self::RotateWebhook => "rotate-webhook",
            Self::RemoveWebhook => "remove-webhook",
            Self::DisableWebhook => "disable-webhook",
            Self::DeleteLinkVisits => "delete-link-visits",
            Self::DeleteOrphanVisits => "delete-orphan-visits",
            Self::EraseVisits => "erase-visits",
        }
    }

    /// Returns `true` if an entry of this kind is about a link. Its subject is then the link's id.
    #[must_use]
    pub fn is_of_link(self) -> bool {
        match self {
            Self::EditLink
            | Self::DeleteLink
            | Self::RestoreLink
            | Self::BlockLink
            | Self::UnblockLink
            | Self::DeleteLinkVisits => true,
            Self::RenameTag
            | Self::DeleteTag
            | Self::AddDomain
            | Self::EditDomain
            | Self::RemoveDomain
            | Self::SetTarget
            | Self::RemoveTarget
            | Self::CreateKey
            | Self::RevokeKey
            | Self::RotateKey
            | Self::CreateWebhook
            | Self::EditWebhook
            | Self::RotateWebhook
            | Self::RemoveWebhook
            | Self::DisableWebhook
            | Self::DeleteOrphanVisits
            | Self::EraseVisits => false,
        }
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
    /// Object of the change: a link's id, a tag, a domain, a pattern, a key's name, a webhook's id, a
    /// network, or `orphans`.
    pub subject: String,
    /// Result of the change, as JSON.
    pub details: Option<Value>,
}

impl Entry {
    /// Returns `true` if the entry is about a link. Its subject is then the link's id.
    #[must_use]
    pub fn is_of_link(&self) -> bool {
        let action = Action::ALL.into_iter().find(|action| action.as_str() == self.action);
        action.is_some_and(Action::is_of_link)
    }
}
