//! What an authenticated API key may see.

use std::sync::Arc;

use super::{ApiKeyId, KeyLimits, SecretNumber};
use crate::{
    Link,
    scope::{Scope, Scopes},
};

/// An authenticated API key: its id, name, scopes and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Key number.
    pub id: ApiKeyId,
    /// The secret that the caller has.
    pub secret: SecretNumber,
    /// Key name, shared because every call has its own grant.
    pub name: Arc<str>,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// Restrictions beyond the scopes.
    pub limits: KeyLimits,
}

impl Grant {
    /// Returns `true` if the key may know that this link exists.
    pub fn sees(&self, link: &Link) -> bool {
        let is_own = !self.limits.own_links_only || link.created_by == self.id;
        is_own && self.limits.domain.is_none_or(|domain| domain == link.domain())
    }

    /// Returns a text that is the same for the keys that see the same links, and that begins no
    /// URL; empty for a key that sees all. Codes from a digest of the long URL depend on it:
    /// otherwise a caller could find out by the code whether others have shortened a URL.
    pub fn tenant(&self) -> String {
        match self.limits.domain {
            _ if self.finds_own_only() => format!("key {}\n", self.id.0),
            Some(domain) => format!("domain {}\n", domain.get()),
            None => String::new(),
        }
    }

    /// Returns `true` if answers may show links. The answer to a change of a link gives any other
    /// key the link's name only.
    pub fn may_read(&self) -> bool {
        self.scopes.allow(Scope::Read)
    }

    /// Returns `true` if a create may be answered only with the key's own existing links.
    ///
    /// A key without the scope `read` could otherwise learn titles, tags and limits of other links
    /// by asking for a link to the same target.
    pub fn finds_own_only(&self) -> bool {
        self.limits.own_links_only || !self.may_read()
    }

    /// Returns `true` if a create may be answered with this existing link.
    pub fn may_be_given(&self, link: &Link) -> bool {
        self.sees(link) && (link.created_by == self.id || !self.finds_own_only())
    }
}
