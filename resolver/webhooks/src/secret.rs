//! Secrets that sign webhooks, in the form of the Standard Webhooks specification.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};

/// What a secret begins with, so that scanners find leaked ones.
const PREFIX: &str = "whsec_";
/// The size of a new secret in bytes: as much as the signature's hash.
const GENERATED_BYTES: usize = 32;
/// The smallest secret in bytes.
const MIN_BYTES: usize = 24;
/// The largest secret in bytes.
const MAX_BYTES: usize = 64;

/// The key of a webhook's signatures: 24 to 64 random bytes. Its debug form hides them.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

/// Why a text is no secret. The text itself is never part of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Another beginning.
    #[error("expected a secret that begins with {PREFIX}")]
    Prefix,
    /// Characters that base64 does not have, or missing padding.
    #[error("expected base64 with padding after {PREFIX}")]
    Base64,
    /// Too few or too many bytes.
    #[error("expected {MIN_BYTES} to {MAX_BYTES} bytes, found {0}")]
    Length(usize),
}

impl Secret {
    /// Generates a secret of 32 bytes.
    ///
    /// # Errors
    /// Returns an error if the operating system has no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; GENERATED_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Box::new(bytes)))
    }

    /// Returns the secret as text, for its owner and the database. There is no `Display`, so that
    /// no log shows it by accident.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::Prefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::Base64)?;
        match bytes.len() {
            MIN_BYTES..=MAX_BYTES => Ok(Self(bytes.into())),
            found => Err(SecretError::Length(found)),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn text_of(bytes: usize) -> String {
        format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]))
    }

    #[test]
    fn secrets_of_24_to_64_bytes_are_parsed() {
        for (bytes, expected) in [
            (0, Err(SecretError::Length(0))),
            (23, Err(SecretError::Length(23))),
            (24, Ok(24)),
            (64, Ok(64)),
            (65, Err(SecretError::Length(65))),
        ] {
            let parsed = text_of(bytes).parse::<Secret>();
            assert_eq!(parsed.map(|secret| secret.bytes().len()), expected, "{bytes}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", SecretError::Prefix),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SecretError::Prefix),
            ("WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SecretError::Prefix),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_", SecretError::Base64),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", SecretError::Base64),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA", SecretError::Base64),
        ] {
            assert_eq!(text.parse::<Secret>().unwrap_err(), reason, "{text:?}");
        }
    }

    #[test]
    fn generated_secrets_differ_and_their_debug_form_hides_them() {
        let (one, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.bytes().len(), GENERATED_BYTES);
        assert_eq!(format!("{one:?}"), "Secret(hidden)");
    }

    proptest! {
        #[test]
        fn a_revealed_secret_parses_to_the_same_bytes(bytes in vec(any::<u8>(), MIN_BYTES..=MAX_BYTES)) {
            let secret = Secret(bytes.into());
            let parsed: Secret = secret.reveal().parse().unwrap();
            prop_assert_eq!(parsed.bytes(), secret.bytes());
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(whsec_)?\\PC*") {
            let _: Result<Secret, SecretError> = text.parse();
        }
    }
}
