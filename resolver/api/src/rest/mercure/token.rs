//! Tokens for the hub: JWTs (RFC 7519) with one algorithm, HS256, signed and read by this service
//! alone.
//!
//! 1. The signature is compared first, in constant time. Nothing of a token is parsed before that.
//! 2. The algorithm is not the token's choice: a header that names another one is refused.
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
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Maximum length of a token. Ours are shorter.
const TOKEN_BYTES: usize = 1_024;
const ALGORITHM: &str = "HS256";

const MALFORMED: Invalid =
    Invalid::because("malformed token: it has to be three parts in base64, separated by dots");
const NOT_SIGNED: Invalid = Invalid::because("this service has not signed the token");
const FOREIGN: Invalid = Invalid::because("the token is not for this hub");
pub(super) const EXPIRED: Invalid = Invalid::because("the token has expired: ask for another one");

#[derive(Serialize, Deserialize)]
struct Header {
    typ: String,
    alg: String,
    /// Extensions that have to be understood: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crit: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    iss: String,
    /// Seconds since 1970.
    iat: i64,
    exp: i64,
    /// Tells the tokens of one second apart: each page that asks for one is a client of its own.
    #[serde(default)]
    jti: String,
    /// What a hub of the specification lets the token do.
    mercure: Subscribe,
    shortmint_key: i64,
    shortmint_secret: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Subscribe {
    subscribe: Vec<String>,
}

impl Claims {
    /// Makes the claims of a token for the caller with a key.
    pub(super) fn new(by: &Grant, now: Timestamp, expires_at: Timestamp) -> Self {
        Self {
            iss: "Shortmint".to_owned(),
            iat: now.as_second(),
            exp: expires_at.as_second(),
            jti: now.as_microsecond().to_string(),
            mercure: Subscribe { subscribe: vec!["*".to_owned()] },
            shortmint_key: by.id.0,
            shortmint_secret: by.secret.0,
        }
    }

    /// Returns the key, and which of its secrets the token was signed for.
    pub(super) fn key(&self) -> (ApiKeyId, SecretNumber) {
        (ApiKeyId(self.shortmint_key), SecretNumber(self.shortmint_secret))
    }

    pub(super) fn expires_at(&self) -> Timestamp {
        Timestamp::from_second(self.exp).unwrap_or(Timestamp::MIN)
    }
}

pub(super) fn sign(secret: &TokenSecret, claims: &Claims) -> String {
    let header = Header { typ: "JWT".to_owned(), alg: ALGORITHM.to_owned(), crit: None };
    sign_parts(secret, &encoded(&header), &encoded(claims))
}

fn encoded(part: &impl Serialize) -> String {
    // Texts and numbers always serialize.
    BASE64.encode(serde_json::to_vec(part).unwrap_or_default())
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
    let header: Header = decoded(header)?;
    if header.alg != ALGORITHM || header.crit.is_some() {
        return Err(FOREIGN);
    }
    let claims: Claims = decoded(claims)?;
    if claims.expires_at() <= now { Err(EXPIRED) } else { Ok(claims) }
}

fn decoded<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, Invalid> {
    let bytes = BASE64.decode(part).map_err(|_| MALFORMED)?;
    serde_json::from_slice(&bytes).map_err(|_| FOREIGN)
}

#[cfg(test)]
mod tests {
    use links::{api_key::KeyLimits, scope::Scopes};
    use serde_json::{Value, json};

    use super::*;

    fn secret(byte: u8) -> TokenSecret {
        TokenSecret([byte; 32])
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claims() -> Claims {
        let (scopes, limits) = (Scopes::admin(), KeyLimits::default());
        let by = Grant { id: ApiKeyId(7), secret: SecretNumber(3), name: "a".into(), scopes, limits };
        Claims::new(&by, at(1_000), at(2_000))
    }

    fn part(value: &Value) -> String {
        encoded(value)
    }

    fn header(alg: &str) -> String {
        part(&json!({ "typ": "JWT", "alg": alg }))
    }

    #[test]
    fn a_token_names_its_key_until_it_expires() {
        let token = sign(&secret(1), &claims());
        assert!(token.len() < TOKEN_BYTES / 2 && token.len() > 41, "{token}");
        let read = verify(&secret(1), &token, at(1_999)).unwrap();
        let key = (ApiKeyId(7), SecretNumber(3));
        assert_eq!((read.key(), read.expires_at(), &read), (key, at(2_000), &claims()));
        assert_eq!(verify(&secret(1), &token, at(2_000)), Err(EXPIRED));
    }

    #[test]
    fn a_token_that_was_not_signed_with_the_secret_is_refused() {
        let token = sign(&secret(1), &claims());
        assert_eq!(verify(&secret(2), &token, at(1_000)), Err(NOT_SIGNED));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let other = part(&serde_json::to_value(Claims { shortmint_key: 8, ..claims() }).unwrap());
        for forged in [
            format!("{head}.{other}.{signature}"),
            format!("{signed}."),
            format!("{}.{other}.", header("none")),
            format!("{}.{other}.{signature}", header("none")),
        ] {
            assert_eq!(verify(&secret(1), &forged, at(1_000)), Err(NOT_SIGNED), "{forged}");
        }
    }

    #[test]
    fn a_header_chooses_no_algorithm_and_no_extension() {
        let claims = part(&serde_json::to_value(claims()).unwrap());
        let critical = part(&json!({ "typ": "JWT", "alg": ALGORITHM, "crit": ["b64"] }));
        for header in [header("none"), header("hs256"), header("RS256"), critical, part(&json!({}))] {
            let token = sign_parts(&secret(1), &header, &claims);
            assert_eq!(verify(&secret(1), &token, at(1_000)), Err(FOREIGN), "{header}");
        }
        assert!(verify(&secret(1), &sign_parts(&secret(1), &header(ALGORITHM), &claims), at(1_000)).is_ok());
    }

    #[test]
    fn a_token_without_our_claim_is_refused() {
        let mut foreign = serde_json::to_value(claims()).unwrap();
        foreign.as_object_mut().unwrap().remove("shortmint_key");
        let text = json!({ "exp": 2_000, "iat": 1, "iss": "x", "mercure": { "subscribe": [] }, "shortmint_key": "7", "shortmint_secret": 1 });
        for claims in [foreign, text, json!({ "mercure": { "subscribe": ["*"] } }), json!(7)] {
            let token = sign_parts(&secret(1), &header(ALGORITHM), &part(&claims));
            assert_eq!(verify(&secret(1), &token, at(1_000)), Err(FOREIGN), "{claims}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        let token = sign(&secret(1), &claims());
        let long = format!("{}.{token}", "a".repeat(TOKEN_BYTES));
        for text in ["", "a", "a.b", "a.b.!", &format!("{token}="), &long] {
            assert_eq!(verify(&secret(1), text, at(1_000)), Err(MALFORMED), "{text}");
        }
        assert_eq!(verify(&secret(1), &format!("x.{token}"), at(1_000)), Err(NOT_SIGNED));
    }
}
