//! Passwords that visitors of a link are asked for: Argon2id, with the parameters that its crate takes from OWASP's advice (19 MiB, two passes).

use argon2::{
    Argon2,
    password_hash::{PasswordHash as Parsed, PasswordHasher, PasswordVerifier, SaltString},
};
use serde::{Deserialize, Serialize};

/// The longest password, in bytes.
const MAX_LEN: usize = 256;
/// Bytes of a salt.
const SALT: usize = 16;

/// The hash of a password, with its salt and parameters.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(Box<str>);

/// Why there is no hash of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Nobody could type it, or it would take long to hash.
    #[error("expected 1 to {MAX_LEN} bytes without control characters")]
    Password,
    /// The system gave no random bytes.
    #[error("no salt is to be had")]
    Salt,
}

impl PasswordHash {
    /// The longest password, in bytes.
    pub const MAX_LEN: usize = MAX_LEN;

    /// Hashes a password. Takes tens of milliseconds: not on a thread that others wait for.
    ///
    /// # Errors
    /// When it is none, or the system has no salt.
    pub fn of(password: &str) -> Result<Self, PasswordError> {
        let fits = (1..=MAX_LEN).contains(&password.len()) && !password.chars().any(char::is_control);
        if !fits {
            return Err(PasswordError::Password);
        }
        let mut salt = [0; SALT];
        getrandom::fill(&mut salt).map_err(|_| PasswordError::Salt)?;
        let salt = SaltString::encode_b64(&salt).map_err(|_| PasswordError::Salt)?;
        let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
        Ok(Self(hash.map_err(|_| PasswordError::Password)?.to_string().into()))
    }

    /// Whether this is the password. Takes as long as hashing it.
    #[must_use]
    pub fn is_of(&self, password: &str) -> bool {
        let Ok(parsed) = Parsed::new(&self.0) else { return false };
        password.len() <= MAX_LEN && Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok()
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_opens_and_no_two_hashes_are_alike() {
        let hash = PasswordHash::of("öffne dich").unwrap();
        assert!(hash.is_of("öffne dich"));
        assert!(!hash.is_of("öffne") && !hash.is_of(""));
        assert_ne!(hash, PasswordHash::of("öffne dich").unwrap());
        let stored = serde_json::to_string(&hash).unwrap();
        assert!(serde_json::from_str::<PasswordHash>(&stored).unwrap().is_of("öffne dich"));
        for wrong in ["", "a\nb", &"x".repeat(MAX_LEN + 1)] {
            assert_eq!(PasswordHash::of(wrong), Err(PasswordError::Password));
        }
    }
}
