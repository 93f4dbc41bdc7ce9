//! Secrets that sign webhooks, in the form of the Standard Webhooks specification: texts, so that
//! they are stored as their owner gets them.

use base64::{Engine, engine::general_purpose::STANDARD};

/// What a secret begins with, so that scanners find leaked ones.
const PREFIX: &str = "whsec_";
/// The size of a new secret in bytes: as much as the signature's hash.
const GENERATED_BYTES: usize = 32;
const MIN_BYTES: usize = 24;
const MAX_BYTES: usize = 64;

/// A text is no secret. It is never part of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {PREFIX} and {MIN_BYTES} to {MAX_BYTES} bytes in base64 with padding")]
pub struct SecretError;

/// Generates a secret of 32 random bytes.
pub fn generate_secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; GENERATED_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

/// Returns the key of signatures that a secret stands for.
pub(crate) fn key_of(secret: &str) -> Result<Vec<u8>, SecretError> {
    let encoded = secret.strip_prefix(PREFIX).ok_or(SecretError)?;
    let key = STANDARD.decode(encoded).map_err(|_| SecretError)?;
    if (MIN_BYTES..=MAX_BYTES).contains(&key.len()) { Ok(key) } else { Err(SecretError) }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn secrets_are_24_to_64_bytes_in_base64() {
        for bytes in [0, 23, 24, 64, 65] {
            let key = key_of(&format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes])));
            assert_eq!(key.map(|key| key.len()).ok(), Some(bytes).filter(|_| (24..65).contains(&bytes)));
        }
        for text in [
            "",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA",
        ] {
            assert_eq!(key_of(text), Err(SecretError), "{text:?}");
        }
    }

    #[test]
    fn generated_secrets_differ() {
        let (one, other) = (generate_secret().unwrap(), generate_secret().unwrap());
        assert_ne!(one, other);
        assert_eq!(key_of(&one).unwrap().len(), GENERATED_BYTES);
    }

    proptest! {
        #[test]
        fn the_key_of_a_secret_is_what_it_encodes(bytes in vec(any::<u8>(), MIN_BYTES..=MAX_BYTES)) {
            prop_assert_eq!(key_of(&format!("{PREFIX}{}", STANDARD.encode(&bytes))), Ok(bytes));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(whsec_)?\\PC*") {
            let _: Result<Vec<u8>, SecretError> = key_of(&text);
        }
    }
}
