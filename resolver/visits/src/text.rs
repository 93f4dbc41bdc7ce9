//! Texts of visits, which rows refer to by their keyed hash.

use crate::secret::secret;

codes::stored_number! {
    /// The hash of a text. 0 stands for the empty text.
    pub struct TextHash(i64);
}

impl TextHash {
    /// The empty text.
    pub const EMPTY: Self = Self(0);
    /// A text that was not kept, because too many new ones arrived at once.
    pub const OTHER: Self = Self(1);
}

secret! {
    /// The key of text hashes: one for a deployment, so that all resolvers share texts. It is
    /// secret, so that a visitor cannot make two texts with the same hash.
    TextKey
}

impl TextKey {
    /// Returns the hash of a text.
    pub fn hash(&self, text: &[u8]) -> TextHash {
        if text.is_empty() {
            return TextHash::EMPTY;
        }
        let hash = self.keyed(&[text]).cast_signed();
        TextHash(if matches!(hash, 0 | 1) { 2 } else { hash })
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
