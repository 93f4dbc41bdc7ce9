//! Deduplication of creates: which earlier request makes a new one a repetition.
//!
//! A store keeps an entry for each deduplicated request, with the link that it made. It locks the
//! entry, asks [`Idempotency`] what to do, and renews the entry, all in the transaction that would
//! store the link.

use std::time::Duration;

use crate::{Link, api_key::ApiKeyId};

/// Deduplication of creates: a request with the same digest returns the earlier link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Digest that identifies equal requests: of the requested link, or of the idempotency key.
    pub digest: String,
    /// How long a repeated request returns the link, counted from the last request.
    pub lifetime: Duration,
    /// For idempotency keys, whose `digest` covers the key only: a digest of the request; the same
    /// for all requests with an external id. The link is returned even if it was edited since.
    pub fingerprint: Option<String>,
}

/// Returns a text in JSON notation (RFC 8259, section 7), of which digests are made.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The stored entry of an earlier request with the same digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    /// Fingerprint of the request, if it had an idempotency key.
    pub fingerprint: Option<String>,
    /// Whether the entry's lifetime has ended.
    pub is_expired: bool,
}

impl Idempotency {
    /// Returns `true` if the idempotency key was used before with another request.
    pub fn is_key_reused(&self, earlier: &EarlierRequest) -> bool {
        !earlier.is_expired && earlier.fingerprint != self.fingerprint
    }

    /// Returns `true` if a request of this API key is answered with the link that the earlier
    /// request made. Otherwise the request takes the earlier one's place.
    ///
    /// An edited link is no longer the one that was requested. Neither is another link under the
    /// code of a deleted one: its version is not 0. A repeated request with an idempotency key gets
    /// the link that it made itself, whatever was edited, and no link that another API key has made
    /// under its code since.
    pub fn returns(&self, link: &Link, earlier: &EarlierRequest, by: ApiKeyId) -> bool {
        let is_requested = match self.fingerprint {
            Some(_) => link.created_by == by,
            None => link.version() == 0,
        };
        !earlier.is_expired && !link.is_deleted() && is_requested
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Details, Edit};

    const BY: ApiKeyId = ApiKeyId(7);
    const OTHER: ApiKeyId = ApiKeyId(8);

    fn request(fingerprint: Option<&str>) -> Idempotency {
        let fingerprint = fingerprint.map(str::to_owned);
        Idempotency { digest: "digest".to_owned(), lifetime: Duration::from_secs(60), fingerprint }
    }

    fn entry(fingerprint: Option<&str>, is_expired: bool) -> EarlierRequest {
        EarlierRequest { fingerprint: fingerprint.map(str::to_owned), is_expired }
    }

    fn link() -> Link {
        Link::sample(Details::default())
    }

    fn edited() -> Link {
        Edit::default().apply(link(), Timestamp::UNIX_EPOCH, BY)
    }

    fn deleted() -> Link {
        link().deleted(Vec::new(), Timestamp::UNIX_EPOCH, BY)
    }

    #[test]
    fn a_key_is_reused_by_another_request_until_it_expires() {
        assert!(!request(Some("a")).is_key_reused(&entry(Some("a"), false)));
        assert!(request(Some("b")).is_key_reused(&entry(Some("a"), false)));
        assert!(request(None).is_key_reused(&entry(Some("a"), false)));
        assert!(!request(Some("b")).is_key_reused(&entry(Some("a"), true)));
        assert!(!request(None).is_key_reused(&entry(None, false)));
    }

    #[test]
    fn an_equal_request_is_answered_with_the_link_as_it_was_requested() {
        let (request, earlier) = (request(None), entry(None, false));
        assert!(request.returns(&link(), &earlier, BY));
        assert!(request.returns(&link(), &earlier, OTHER), "the digest says whose links count");
        assert!(!request.returns(&edited(), &earlier, BY));
        assert!(!request.returns(&deleted(), &earlier, BY));
        assert!(!request.returns(&link(), &entry(None, true), BY));
    }

    #[test]
    fn a_repeated_key_is_answered_with_its_own_link_even_if_it_was_edited() {
        let (request, earlier) = (request(Some("a")), entry(Some("a"), false));
        assert!(request.returns(&link(), &earlier, BY));
        assert!(request.returns(&edited(), &earlier, BY));
        assert!(!request.returns(&link(), &earlier, OTHER));
        assert!(!request.returns(&deleted(), &earlier, BY));
        assert!(!request.returns(&link(), &entry(Some("a"), true), BY));
    }
}
