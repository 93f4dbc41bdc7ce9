//! Ids that callers give their links, such as the numbers of their products, to send a link again
//! with other fields.
//!
//! 1. An id belongs to the API key that sends it: those of other keys neither collide nor show.
//! 2. It has an entry among those of deduplicated creates ([`Idempotency`]), for good. So of
//!    concurrent creates one makes the link, and the others get it, also after an outcome in doubt.
//! 3. The entry decides. The copy in the details of a link is for readers and exports.

use std::time::Duration;

use codes::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Idempotency, Invalid, api_key::ApiKeyId, quoted, text_value::text_value};

/// How long an entry is kept, from the last create on: a hundred years, which is for good.
const KEPT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// The same for all requests: fields that differ make an edit, and are no misuse of a key.
const FINGERPRINT: &str = "external id";
const NOT_AN_ID: Invalid = Invalid::because("expected 1 to 255 bytes without control characters, or null");

/// Id of a link in the system of the caller.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExternalId(Box<str>);

text_value!(ExternalId);

impl ExternalId {
    /// Maximum length in bytes.
    pub const MAX_LEN: usize = 255;

    /// Parses an id. Spaces around it are dropped, as those of a query's values are; otherwise it
    /// is kept as it is written.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let fits = (1..=Self::MAX_LEN).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits { Ok(Self(text.into())) } else { Err(NOT_AN_ID) }
    }

    /// Returns the digest of the entry of this id of an API key. It is stored, so the format of its
    /// input must not change.
    pub fn digest(&self, ApiKeyId(key): ApiKeyId) -> String {
        hex(&Sha256::digest(format!("[\"external\",{key},{}]", quoted(&self.0))))
    }

    /// Returns what a create with this id of an API key is deduplicated by.
    pub fn entry(&self, key: ApiKeyId) -> Idempotency {
        Idempotency { digest: self.digest(key), lifetime: KEPT, fingerprint: Some(FINGERPRINT.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_line() {
        for text in ["1", " a b ", "\u{77ed}\u{3044}", "\"],[", &"x".repeat(ExternalId::MAX_LEN)] {
            assert_eq!(ExternalId::parse(text).unwrap().as_str(), text.trim());
        }
        for text in ["", " ", "a\nb", "\0", &"x".repeat(ExternalId::MAX_LEN + 1)] {
            assert_eq!(ExternalId::parse(text), Err(NOT_AN_ID), "{text:?}");
        }
    }

    #[test]
    fn each_id_of_each_key_has_an_entry_of_its_own() {
        let digest = |text: &str, key| ExternalId::parse(text).unwrap().digest(ApiKeyId(key));
        assert_eq!(digest("a", 7), digest("a", 7));
        assert_ne!(digest("a", 7), digest("a", 8));
        assert_ne!(digest("a", 7), digest("A", 7));
        assert_ne!(digest("\"],[\"a", 7), digest("a", 7));
    }
}
