//! API keys and the sessions that they open: random secrets, stored as hashes.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    DomainId, Invalid, Link,
    scope::{Scope, Scopes},
};

/// Number of an API key in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiKeyId(pub i64);

/// Number of a secret of an API key: the first one is 1, and each rotation adds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretNumber(pub i64);

/// SHA-256 of an API key. A generated key has 256 random bits, so no slow hash is needed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

/// SHA-256 of the token of a browser session, which has 256 random bits too.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionHash([u8; 32]);

/// API key in clear text, as a client sends it. It is printed once, to the person who requested it.
pub struct ApiKey(String);

/// Id of the operator, who acts on the command line beside the server, without an API key.
pub const OPERATOR: ApiKeyId = ApiKeyId(0);

/// Restrictions of an API key, beyond its scopes. Stored as an object, so that a new field needs no
/// migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyLimits {
    /// The only domain on which the key may see and create links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainId>,
    /// Whether the key sees only the links that it created.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_links_only: bool,
    /// Whether the key sees no visit that no link redirected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_orphan_visits: bool,
    /// Maximum calls per minute at each resolver; `None` for the default of all keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Members that only a later release can read. A key with one of them is valid there only.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

impl KeyLimits {
    /// Returns `true` if the limits hide some links from the key.
    pub fn hides_links(&self) -> bool {
        self.domain.is_some() || self.own_links_only
    }

    /// Returns `true` if the limits hide links or visits from the key.
    pub fn hide(&self) -> bool {
        self.hides_links() || self.no_orphan_visits
    }

    /// Returns `true` if the key sees visits that no link redirected: those of its domain, or all.
    /// They may be of links that others have deleted, so they are no part of a key's own links.
    pub fn sees_orphans(&self) -> bool {
        !self.own_links_only && !self.no_orphan_visits
    }
}

/// An API key to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Key name.
    pub name: String,
    /// Key hash.
    pub hash: KeyHash,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// Expiry time; `None` if the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// Restrictions beyond the scopes.
    pub limits: KeyLimits,
}

/// Metadata of a stored API key, without its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// Key number.
    pub id: ApiKeyId,
    /// Key name.
    pub name: String,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// Creation time.
    pub created_at: Timestamp,
    /// Revocation time.
    pub revoked_at: Option<Timestamp>,
    /// Expiry time.
    pub expires_at: Option<Timestamp>,
    /// Restrictions beyond the scopes.
    pub limits: KeyLimits,
    /// Time of the last use, to within some seconds.
    pub last_used_at: Option<Timestamp>,
    /// Number of the current secret.
    pub secret: SecretNumber,
}

impl ApiKey {
    /// Generates a random key of 256 bits, as 64 hexadecimal digits.
    pub fn draw() -> Result<Self, getrandom::Error> {
        random_hex::<32>().map(Self)
    }

    /// Validates a key that an operator chose.
    pub fn chosen(text: &str) -> Result<Self, Invalid> {
        let fits = (16..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let invalid = Invalid::because("expected 16 to 128 visible ASCII characters");
        if fits { Ok(Self(text.to_owned())) } else { Err(invalid) }
    }

    /// Returns the hash that is stored.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// Returns the key in clear text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Draws random bytes, and writes each as two hexadecimal digits.
pub fn random_hex<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(codes::hex(&bytes))
}

/// Validates the name of an API key.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(plain);
    let invalid = Invalid::because("expected 1 to 64 characters of A-Z, a-z, 0-9, '-', '_' and '.'");
    if fits { Ok(()) } else { Err(invalid) }
}

/// Gives a type around a SHA-256 its constructor, its bytes, and a debug form that hides them.
macro_rules! secret_hash {
    ($name:ident) => {
        impl $name {
            /// Hashes a secret that a client sent, valid or not.
            pub fn of(secret: &[u8]) -> Self {
                Self(Sha256::digest(secret).into())
            }

            /// Returns the 32 bytes of the hash, as they are stored.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

secret_hash!(KeyHash);
secret_hash!(SessionHash);

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
