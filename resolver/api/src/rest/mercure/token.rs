//! Tokens for the hub: JWTs (RFC 7519) with one algorithm, HS256, signed and read by this service
//! alone.
//!
//! 1. The signature is compared first, in constant time. Nothing of a token is parsed before that.
//! 2. The algorithm is not the token's choice: any header but that of our own tokens is refused.
//! 3. The private claims `shortmint_key` and `shortmint_secret` are the id of the API key and the
//!    number of its secret. A hash of the secret in place of it would let a reader of the URL guess
//!    one that a person has chosen.
//!
//! Rejected: a crate for JWTs. Those that are kept bring algorithms, key formats and switches to
//! verify less; one algorithm between the same two functions takes a page.

use app::live::TokenSecret;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use links::{
    Invalid,
    api_key::{ApiKeyId, Grant, SecretNumber},
};
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;

/// Maximum length of a token. Ours are shorter.
const TOKEN_BYTES: usize = 1_024;
/// The first part of every token: `{"typ":"JWT","alg":"HS256"}`.
const HEADER: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9";

const MALFORMED: Invalid =
    Invalid::because("malformed token: it has to be three parts in base64, separated by dots");
const NOT_SIGNED: Invalid = Invalid::because("this service has not signed the token");
const FOREIGN: Invalid = Invalid::because("the token is not for this hub");
pub(super) const EXPIRED: Invalid = Invalid::because("the token has expired: ask for another one");

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Claims {
    /// Seconds since 1970.
    exp: i64,
    shortmint_key: i64,
    shortmint_secret: i64,
}

impl Claims {
    /// Returns the key, and which of its secrets the token was signed for.
    pub(super) fn key(&self) -> (ApiKeyId, SecretNumber) {
        (ApiKeyId(self.shortmint_key), SecretNumber(self.shortmint_secret))
    }

    pub(super) fn expires_at(&self) -> Timestamp {
        Timestamp::from_second(self.exp).unwrap_or(Timestamp::MIN)
    }
}

pub(super) fn sign(secret: &TokenSecret, by: &Grant, now: Timestamp, expires_at: Timestamp) -> String {
    let claims = json!({
        "iss": "Shortmint",
        "iat": now.as_second(),
        "exp": expires_at.as_second(),
        // Tells the tokens of one second apart: each page that asks for one is a client of its own.
        "jti": now.as_microsecond().to_string(),
        // The token's permissions, as a hub of the specification reads them.
        "mercure": { "subscribe": ["*"] },
        "shortmint_key": by.id.0,
        "shortmint_secret": by.secret.0,
    });
    sign_parts(secret, HEADER, &BASE64.encode(claims.to_string()))
}

fn sign_parts(secret: &TokenSecret, header: &str, claims: &str) -> String {
    let signed = format!("{header}.{claims}");
    let signature = BASE64.encode(mac(secret, &signed).finalize().into_bytes());
    format!("{signed}.{signature}")
}

fn mac(secret: &TokenSecret, signed: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("HMAC takes keys of any length");
    mac.update(signed.as_bytes());
    mac
}

/// Reads a token that was signed with the secret and is valid at `now`.
pub(super) fn verify(secret: &TokenSecret, token: &str, now: Timestamp) -> Result<Claims, Invalid> {
    let (signed, signature) =
        token.rsplit_once('.').filter(|_| token.len() <= TOKEN_BYTES).ok_or(MALFORMED)?;
    let (header, claims) = signed.split_once('.').ok_or(MALFORMED)?;
    let signature = BASE64.decode(signature).map_err(|_| MALFORMED)?;
    mac(secret, signed).verify_slice(&signature).map_err(|_| NOT_SIGNED)?;
    if header != HEADER {
        return Err(FOREIGN);
    }
    let claims = BASE64.decode(claims).map_err(|_| MALFORMED)?;
    let claims: Claims = serde_json::from_slice(&claims).map_err(|_| FOREIGN)?;
    if claims.expires_at() <= now { Err(EXPIRED) } else { Ok(claims) }
}

#[cfg(test)]
mod tests {
    use links::{api_key::KeyLimits, scope::Scopes};
    use serde_json::Value;

    use super::*;

    fn secret(byte: u8) -> TokenSecret {
        TokenSecret([byte; 32])
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn token() -> String {
        let (scopes, limits) = (Scopes::admin(), KeyLimits::default());
        let by = Grant { id: ApiKeyId(7), secret: SecretNumber(3), name: "a".into(), scopes, limits };
        sign(&secret(1), &by, at(1_000), at(2_000))
    }

    fn part(value: &Value) -> String {
        BASE64.encode(value.to_string())
    }

    fn claims() -> Value {
        json!({ "exp": 2_000, "shortmint_key": 8, "shortmint_secret": 3 })
    }

    fn header(alg: &str) -> String {
        part(&json!({ "typ": "JWT", "alg": alg }))
    }

    #[test]
    fn a_token_names_its_key_until_it_expires() {
        let token = token();
        assert!(token.len() < TOKEN_BYTES / 2 && token.len() > 41, "{token}");
        let read = verify(&secret(1), &token, at(1_999)).unwrap();
        assert_eq!((read.key(), read.expires_at()), ((ApiKeyId(7), SecretNumber(3)), at(2_000)));
        assert_eq!(verify(&secret(1), &token, at(2_000)), Err(EXPIRED));
    }

    #[test]
    fn a_token_that_was_not_signed_with_the_secret_is_refused() {
        let token = token();
        assert_eq!(verify(&secret(2), &token, at(1_000)), Err(NOT_SIGNED));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let other = part(&claims());
        for forged in [
            format!("{HEADER}.{other}.{signature}"),
            format!("{signed}."),
            format!("{}.{other}.", header("none")),
            format!("{}.{other}.{signature}", header("none")),
        ] {
            assert_eq!(verify(&secret(1), &forged, at(1_000)), Err(NOT_SIGNED), "{forged}");
        }
    }

    #[test]
    fn a_header_chooses_no_algorithm_and_no_extension() {
        let claims = part(&claims());
        let critical = part(&json!({ "typ": "JWT", "alg": "HS256", "crit": ["b64"] }));
        for header in [header("none"), header("hs256"), header("RS256"), critical, part(&json!({}))] {
            let token = sign_parts(&secret(1), &header, &claims);
            assert_eq!(verify(&secret(1), &token, at(1_000)), Err(FOREIGN), "{header}");
        }
        assert!(verify(&secret(1), &sign_parts(&secret(1), &header("HS256"), &claims), at(1_000)).is_ok());
    }

    #[test]
    fn a_token_without_our_claim_is_refused() {
        let mut foreign = claims();
        foreign.as_object_mut().unwrap().remove("shortmint_key");
        let text = json!({ "exp": 2_000, "shortmint_key": "7", "shortmint_secret": 1 });
        for claims in [foreign, text, json!({ "mercure": { "subscribe": ["*"] } }), json!(7)] {
            let token = sign_parts(&secret(1), HEADER, &part(&claims));
            assert_eq!(verify(&secret(1), &token, at(1_000)), Err(FOREIGN), "{claims}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        let token = token();
        let long = format!("{}.{token}", "a".repeat(TOKEN_BYTES));
        for text in ["", "a", "a.b", "a.b.!", &format!("{token}="), &long] {
            assert_eq!(verify(&secret(1), text, at(1_000)), Err(MALFORMED), "{text}");
        }
        assert_eq!(verify(&secret(1), &format!("x.{token}"), at(1_000)), Err(NOT_SIGNED));
    }
}
