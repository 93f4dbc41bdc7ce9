//! The signature of a request, as the Standard Webhooks specification 1.0.0 defines it.
//!
//! 1. The signed content is the message id, the time and the body, separated by full stops. An id
//!    must have no full stop, so that one content cannot be read as another.
//! 2. The time is the attempt's, and the id is the delivery's: retries sign anew with the same id.
//! 3. Secrets are texts, so that they are stored as their owner gets them.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

/// Prefix of a secret, so that scanners find leaked ones.
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

fn key_of(secret: &str) -> Result<Vec<u8>, SecretError> {
    let encoded = secret.strip_prefix(PREFIX).ok_or(SecretError)?;
    let key = STANDARD.decode(encoded).map_err(|_| SecretError)?;
    if (MIN_BYTES..=MAX_BYTES).contains(&key.len()) { Ok(key) } else { Err(SecretError) }
}

/// The names and values of the headers that identify and authenticate one attempt.
pub type SignedHeaders = [(&'static str, String); 3];

/// Signs an attempt with each secret: the current one, and the former one while it still counts
/// after a rotation. A receiver accepts an attempt if one signature is right.
pub fn sign(
    secrets: &[&str],
    id: &str,
    attempted_at: Timestamp,
    body: &[u8],
) -> Result<SignedHeaders, SecretError> {
    let timestamp = attempted_at.as_second().to_string();
    let signatures = secrets.iter().map(|secret| signature(secret, id, &timestamp, body));
    let signatures: Vec<String> = signatures.collect::<Result<_, _>>()?;
    Ok([
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures.join(" ")),
    ])
}

fn signature(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> Result<String, SecretError> {
    let mac = Hmac::<Sha256>::new_from_slice(&key_of(secret)?).expect("HMAC takes keys of every length");
    let mac = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
        .into_iter()
        .fold(mac, |mac, part| mac.chain_update(part));
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// The test vector that all libraries of the specification have.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    /// The bytes 0 to 63.
    const LONGEST: &str =
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

    fn signed(secrets: &[&str], id: &str, at: i64, body: &[u8]) -> SignedHeaders {
        sign(secrets, id, Timestamp::from_second(at).unwrap(), body).unwrap()
    }

    #[test]
    fn the_published_vector_is_signed_as_published() {
        let expected =
            [("webhook-id", ID), ("webhook-timestamp", "1614265330"), ("webhook-signature", SIGNATURE)];
        assert_eq!(signed(&[SECRET], ID, AT, BODY), expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn signatures_equal_those_of_another_implementation() {
        // Computed with the modules hmac and hashlib of Python.
        for (secret, id, at, body, signature) in [
            (LONGEST, ID, AT, BODY, "v1,LZ5zuwHTqQH3VM8ERUusjzVQq1FXzemvpR8Mk7Ivp5c="),
            (SECRET, "a", 0, &[][..], "v1,ZyVG66Mr75yBcUDUg3OFSwOBLDdB73ytHZQLL4wzqLI="),
            (
                SECRET,
                "msg-1_Z",
                253_402_207_200,
                &[0, 255, 0xc3, 0x28],
                "v1,NuyAY5aDchYLnPWhCoMwqvFL+KXDlAEfzJbKwbHhfwo=",
            ),
        ] {
            assert_eq!(signed(&[secret], id, at, body)[2].1, signature, "{id}");
        }
    }

    #[test]
    fn during_a_rotation_each_secret_signs_and_the_current_one_is_first() {
        let current = signed(&[LONGEST], ID, AT, BODY)[2].1.clone();
        let rotated = signed(&[LONGEST, SECRET], ID, AT, BODY)[2].1.clone();
        assert_eq!(rotated, format!("{current} {SIGNATURE}"));
    }

    #[test]
    fn secrets_are_24_to_64_bytes_in_base64() {
        for bytes in [0, 23, 24, 64, 65] {
            let key = key_of(&format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes])));
            assert_eq!(key.map(|key| key.len()).ok(), Some(bytes).filter(|_| (24..65).contains(&bytes)));
        }
        let wrong = "|MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw|WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw|\
                     whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_|whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n|\
                     whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA";
        for text in wrong.split('|') {
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
