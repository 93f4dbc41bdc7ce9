//! The secret key that determines the order of codes, fixed for the life of a deployment.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;

const LEN: usize = 32;

/// The secret key; never printed. Its `Debug` output shows only the fingerprint.
#[derive(Clone)]
pub struct CodeKey([u8; LEN]);

/// The error for a text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {} hexadecimal characters", 2 * LEN)]
pub struct CodeKeyError;

impl CodeKey {
    /// Generates a random key.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; LEN];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Parses a key of 64 hexadecimal characters.
    pub fn parse(text: &str) -> Result<Self, CodeKeyError> {
        // `from_str_radix` would take a sign.
        if text.len() != 2 * LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(CodeKeyError);
        }
        let mut bytes = [0; LEN];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(pair, 16).map_err(|_| CodeKeyError)?;
        }
        Ok(Self(bytes))
    }

    /// Returns the key itself as hexadecimal characters, for storage in a file.
    pub fn reveal(&self) -> String {
        hex(&self.0)
    }

    /// Derives a key for one purpose with HKDF (RFC 5869). It reveals nothing about the others.
    pub(super) fn derive(&self, purpose: &str) -> [u8; LEN] {
        let mut derived = [0; LEN];
        let info = format!("shortmint {purpose}");
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(info.as_bytes(), &mut derived)
            .expect("32 bytes are far below HKDF's limit of 255 hashes");
        derived
    }

    /// Returns the fingerprint of this key: a one-way digest, kept in the database, which refuses a
    /// resolver with another key.
    pub fn fingerprint(&self) -> String {
        hex(&self.derive("code key fingerprint")[..16])
    }
}

/// Writes each byte as two hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_key_is_refused_and_a_key_is_never_printed() {
        for bad in ["", "00", &"g".repeat(64), &"é".repeat(32), &"+f".repeat(32), &"0".repeat(66)] {
            assert_eq!(CodeKey::parse(bad).err(), Some(CodeKeyError), "{bad:?}");
        }
        let key = CodeKey::parse(&"ab".repeat(32)).unwrap();
        assert_eq!(key.reveal(), "ab".repeat(32));
        assert!(!format!("{key:?}").contains("abab"));
        assert_ne!(key.fingerprint(), CodeKey::parse(&"ac".repeat(32)).unwrap().fingerprint());
    }
}
