//! Browser sessions: random tokens, stored as a hash.

use std::fmt;

use sha2::{Digest, Sha256};

/// SHA-256 of the token of a browser session. A slow hash would add nothing, because a token has
/// 256 random bits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionHash([u8; 32]);

impl SessionHash {
    /// Hashes a token that a browser sent, valid or not.
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Returns the 32 bytes of the hash, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SessionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionHash(..)")
    }
}
