//! Texts of visits, which rows refer to by their keyed hash.

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::hash::Hasher as _;

/// The hash of a text. 0 stands for the empty text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextHash(i64);

impl TextHash {
    /// The empty text.
    pub const EMPTY: Self = Self(0);
    /// A text that was not kept, because too many new ones arrived at once.
    pub const OTHER: Self = Self(1);

    /// Wraps a stored hash.
    #[must_use]
    pub fn from_stored(hash: i64) -> Self {
        Self(hash)
    }

    /// Returns the hash as it is stored.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

/// The key of text hashes: one for a deployment, so that all resolvers share texts. It is secret,
/// so that a visitor cannot make two texts with the same hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TextKey([u8; 16]);

impl TextKey {
    /// Wraps 16 random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the hash of a text.
    #[must_use]
    pub fn hash(&self, text: &[u8]) -> TextHash {
        if text.is_empty() {
            return TextHash::EMPTY;
        }
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(text);
        let hash = i64::from_ne_bytes(hasher.finish128().h1.to_ne_bytes());
        TextHash(if matches!(hash, 0 | 1) { 2 } else { hash })
    }
}

impl std::fmt::Debug for TextKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TextKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_hashes_that_depend_on_the_key() {
        let (one, other) = (TextKey::new([1; 16]), TextKey::new([2; 16]));
        assert_eq!(one.hash(b""), TextHash::EMPTY);
        assert_eq!(one.hash(b"a"), one.hash(b"a"));
        assert_ne!(one.hash(b"a"), one.hash(b"b"));
        assert_ne!(one.hash(b"a"), other.hash(b"a"));
        assert_eq!(format!("{one:?}"), "TextKey(…)");
    }
}
