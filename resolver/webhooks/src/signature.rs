//! The signature of a request, as the Standard Webhooks specification 1.0.0 defines it.
//!
//! 1. The signed content is the message id, the time and the body, separated by full stops. No id
//!    has a full stop, so that one content cannot be read as another.
//! 2. The time is the attempt's, and the id is the delivery's: retries sign anew with the same id.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

use crate::secret::Secret;

/// The longest message id in bytes.
const MAX_ID: usize = 64;

/// The id of a delivery, the same in all its attempts. It is the receiver's idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageId(Box<str>);

/// A text that is no message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a message id of 1 to {MAX_ID} letters, digits, dashes and underscores, found {0} bytes")]
pub struct MessageIdError(usize);

impl MessageId {
    /// Returns the id as it is sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MessageId {
    type Err = MessageIdError;

    fn from_str(text: &str) -> Result<Self, MessageIdError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match text.len() {
            1..=MAX_ID if text.bytes().all(is_plain) => Ok(Self(text.into())),
            found => Err(MessageIdError(found)),
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The headers that identify and authenticate one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeaders {
    id: String,
    timestamp: String,
    signature: String,
}

impl SignedHeaders {
    /// Returns the names and values of the headers.
    #[must_use]
    pub fn pairs(&self) -> [(&'static str, &str); 3] {
        [
            ("webhook-id", &self.id),
            ("webhook-timestamp", &self.timestamp),
            ("webhook-signature", &self.signature),
        ]
    }
}

/// Signs an attempt with the current secret, and with the former ones while they still count after
/// a rotation. A receiver accepts an attempt if one signature is right.
#[must_use]
pub fn sign(
    current: &Secret,
    former: &[Secret],
    id: &MessageId,
    attempted_at: Timestamp,
    body: &[u8],
) -> SignedHeaders {
    let (id, timestamp) = (id.to_string(), attempted_at.as_second().to_string());
    let secrets = std::iter::once(current).chain(former);
    let signatures: Vec<String> = secrets.map(|secret| signature(secret, &id, &timestamp, body)).collect();
    SignedHeaders { id, timestamp, signature: signatures.join(" ") }
}

fn signature(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.bytes()).expect("HMAC takes keys of every length");
    let mac = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
        .into_iter()
        .fold(mac, |mac, part| mac.chain_update(part));
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
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

    fn secret(text: &str) -> Secret {
        text.parse().unwrap()
    }

    fn headers(current: &str, former: &[Secret], id: &str, at: i64, body: &[u8]) -> SignedHeaders {
        sign(&secret(current), former, &id.parse().unwrap(), Timestamp::from_second(at).unwrap(), body)
    }

    #[test]
    fn the_published_vector_is_signed_as_published() {
        let headers = headers(SECRET, &[], ID, AT, BODY);
        let expected =
            [("webhook-id", ID), ("webhook-timestamp", "1614265330"), ("webhook-signature", SIGNATURE)];
        assert_eq!(headers.pairs(), expected);
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
            assert_eq!(headers(secret, &[], id, at, body).signature, signature, "{id}");
        }
    }

    #[test]
    fn during_a_rotation_each_secret_signs_and_the_current_one_is_first() {
        let rotated = headers(LONGEST, &[secret(SECRET)], ID, AT, BODY);
        let current = headers(LONGEST, &[], ID, AT, BODY).signature;
        assert_eq!(rotated.signature, format!("{current} {SIGNATURE}"));
    }

    #[test]
    fn an_id_with_a_full_stop_or_of_a_wrong_length_is_refused() {
        for text in ["", "msg.1", "msg 1", "msg\r\n1", "mäg", &"x".repeat(MAX_ID + 1)] {
            assert_eq!(text.parse::<MessageId>(), Err(MessageIdError(text.len())), "{text:?}");
        }
        assert!("x".repeat(MAX_ID).parse::<MessageId>().is_ok());
    }
}
