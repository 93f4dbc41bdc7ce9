//! API keys: random, shown once, stored as a hash.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    DomainId, Link,
    scope::{Scope, Scopes},
};

/// A key's number in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiKeyId(pub i64);

/// SHA-256 of a key. A key has 256 random bits, so a slow hash would add nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

/// A key as a client sends it; never printed but once, where a person asked for it.
pub struct ApiKey(String);

/// Who acts on the command line, beside the server.
pub const OPERATOR: ApiKeyId = ApiKeyId(0);

/// What a key may not do, whatever its scopes. Stored as an object: a field that is added here needs no migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyLimits {
    /// The one domain whose links it may see and make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainId>,
    /// Whether it may see links of its own only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_links_only: bool,
    /// Calls in a minute; those of all resolvers are not added up. As many as any key, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
}

impl KeyLimits {
    /// Whether some links are none of its business.
    #[must_use]
    pub fn hides_links(&self) -> bool {
        self.domain.is_some() || self.own_links_only
    }
}

/// A key that was found: whose it is and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The key's number.
    pub id: ApiKeyId,
    /// Its name. Each call has a grant of its own, and shares this.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Scopes,
    /// What it may not do all the same.
    pub limits: KeyLimits,
}

impl Grant {
    /// Whether it may know of this link.
    #[must_use]
    pub fn sees(&self, link: &Link) -> bool {
        let is_own = !self.limits.own_links_only || link.created_by == self.id;
        is_own && self.limits.domain.is_none_or(|domain| domain == link.domain())
    }

    /// Whether a link that exists may be given to it instead of a new one only if it is its own: a
    /// key that must not read links is not to learn of others' titles, tags and limits by wishing
    /// for the same.
    #[must_use]
    pub fn finds_own_only(&self) -> bool {
        self.limits.own_links_only || !self.scopes.allow(Scope::Read)
    }

    /// Whether it may be given this link instead of a new one.
    #[must_use]
    pub fn may_be_given(&self, link: &Link) -> bool {
        self.sees(link) && (link.created_by == self.id || !self.finds_own_only())
    }
}

/// A key to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// What to call it.
    pub name: String,
    /// Its hash.
    pub hash: KeyHash,
    /// What it may do.
    pub scopes: Scopes,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// What it may not do all the same.
    pub limits: KeyLimits,
}

/// What may be told of a stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// Its number.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Until when it is good.
    pub expires_at: Option<Timestamp>,
    /// What it may not do, whatever its scopes.
    pub limits: KeyLimits,
    /// When it was last used, to some seconds.
    pub last_used_at: Option<Timestamp>,
}

/// A name or key that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// Too short to be safe, or not fit for a header.
    #[error("expected 16 to 128 visible ASCII characters")]
    Key,
    /// Not fit for a table.
    #[error("expected 1 to 64 characters of A-Z, a-z, 0-9, '-', '_' and '.'")]
    Name,
}

impl ApiKey {
    /// Draws a key.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Takes a key that an operator chose.
    ///
    /// # Errors
    /// When it is too short to be safe or not fit for a header.
    pub fn chosen(text: &str) -> Result<Self, ApiKeyError> {
        let fits = (16..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(ApiKeyError::Key) }
    }

    /// The hash that is stored.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// The key itself, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Checks a key's name.
///
/// # Errors
/// Says what was expected.
pub fn check_name(name: &str) -> Result<(), ApiKeyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) { Ok(()) } else { Err(ApiKeyError::Name) }
}

impl KeyHash {
    /// The hash of whatever a client sent.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// The hash as it is stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}
