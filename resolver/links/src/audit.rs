//! Who wrote what, and when.

mod domain;
mod state;

use jiff::Timestamp;
use serde_json::Value;

use crate::api_key::ApiKeyId;

pub use domain::{domain_change, domain_name};
pub use state::{Told, change, state, tell};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A link was changed.
    EditLink,
    /// A link was deleted.
    DeleteLink,
    /// A link was brought back.
    RestoreLink,
    /// An operator took a link down.
    BlockLink,
    /// An operator brought a link back that was taken down.
    UnblockLink,
    /// A tag got another name.
    RenameTag,
    /// Tags were taken away.
    DeleteTag,
    /// A domain was added: for a key, for its first link, or by an import.
    AddDomain,
    /// A domain was changed.
    EditDomain,
    /// A domain was removed.
    RemoveDomain,
    /// A rule about targets was added or changed.
    SetTarget,
    /// A rule about targets was taken away.
    RemoveTarget,
    /// An API key was made.
    CreateKey,
    /// An API key was revoked.
    RevokeKey,
    /// An API key got another secret.
    RotateKey,
}

impl Action {
    /// Its name, in the log and in the database.
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
        }
    }
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number; grows with time.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// With whose key; 0 on the operator's command line.
    pub by: ApiKeyId,
    /// That key's name.
    pub by_name: Option<String>,
    /// What was done.
    pub action: String,
    /// To what: a link's id, a tag, a domain, a pattern, a key's name.
    pub subject: String,
    /// What it came to.
    pub details: Option<Value>,
}

impl Entry {
    /// Whether it is about a link, and its subject the link's id.
    #[must_use]
    pub fn is_of_link(&self) -> bool {
        self.action.ends_with("-link")
    }
}
