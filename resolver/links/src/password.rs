//! Link passwords, hashed with Argon2id. The parameters are the defaults of the crate `argon2`,
//! which follow OWASP's advice (19 MiB, two passes).

use argon2::{
    Argon2, Params,
    password_hash::{PasswordHash as Parsed, PasswordHasher, PasswordVerifier, SaltString},
};
use serde::{Deserialize, Serialize};

use super::Invalid;

const SALT: usize = 16;

/// Hash of a password in the PHC string format, with its salt and parameters.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(Box<str>);

/// Limits for the cost of an imported hash: memory in KiB, passes and lanes. A visitor's every
/// attempt costs as much.
const IMPORTED_MAX: (u32, u32, u32) = (64 * 1024, 8, 4);
/// Maximum length of a hash in the PHC string format, in bytes.
const PHC_BYTES: usize = 512;

/// Control characters cannot be typed, and a long password would take long to hash. The length is
/// [`PasswordHash::MAX_LEN`].
const NOT_A_PASSWORD: Invalid = Invalid::because("expected 1 to 256 bytes without control characters");
const NOT_CHEAP: Invalid = Invalid::because(
    "expected an Argon2 hash such as $argon2id$v=19$m=19456,t=2,p=1$…$…, of at most 64 MiB, 8 passes and 4 lanes",
);

impl PasswordHash {
    /// Maximum length of a password, in bytes.
    pub const MAX_LEN: usize = 256;

    /// Hashes a password with a random salt. Takes tens of milliseconds, so it must not block a
    /// thread that serves others.
    pub fn of(password: &str) -> Result<Self, Invalid> {
        let fits =
            (1..=PasswordHash::MAX_LEN).contains(&password.len()) && !password.chars().any(char::is_control);
        if !fits {
            return Err(NOT_A_PASSWORD);
        }
        let mut salt = [0; SALT];
        let no_salt = || Invalid::because("the system provided no random bytes for a salt");
        getrandom::fill(&mut salt).map_err(|_| no_salt())?;
        let salt = SaltString::encode_b64(&salt).map_err(|_| no_salt())?;
        let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
        Ok(Self(hash.map_err(|_| NOT_A_PASSWORD)?.to_string().into()))
    }

    /// Accepts a hash that another deployment computed, in the PHC string format.
    pub fn from_phc(text: &str) -> Result<Self, Invalid> {
        let parsed = Parsed::new(text).map_err(|_| NOT_CHEAP)?;
        let params = Params::try_from(&parsed).map_err(|_| NOT_CHEAP)?;
        let (memory, passes, lanes) = IMPORTED_MAX;
        let is_cheap = params.m_cost() <= memory && params.t_cost() <= passes && params.p_cost() <= lanes;
        let is_argon2 = argon2::Algorithm::try_from(parsed.algorithm).is_ok();
        let is_whole = parsed.salt.is_some() && parsed.hash.is_some();
        if text.len() <= PHC_BYTES && is_argon2 && is_cheap && is_whole {
            Ok(Self(text.into()))
        } else {
            Err(NOT_CHEAP)
        }
    }

    /// Returns the hash in the PHC string format, for an export. It is a secret, because a weak
    /// password can be guessed from it.
    pub fn phc(&self) -> &str {
        &self.0
    }

    /// Verifies a password. Takes as long as hashing it, with the parameters of the hash.
    pub fn is_of(&self, password: &str) -> bool {
        let Ok(parsed) = Parsed::new(&self.0) else { return false };
        password.len() <= PasswordHash::MAX_LEN
            && Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok()
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
        for wrong in ["", "a\nb", &"x".repeat(PasswordHash::MAX_LEN + 1)] {
            assert_eq!(PasswordHash::of(wrong), Err(NOT_A_PASSWORD));
        }
    }

    #[test]
    fn a_hash_from_elsewhere_is_taken_if_it_can_be_checked_cheaply() {
        let hash = PasswordHash::of("hush").unwrap();
        assert_eq!(PasswordHash::from_phc(hash.phc()).as_ref(), Ok(&hash));
        let costly = hash.phc().replace("m=19456", "m=4194304");
        let long = hash.phc().replace("t=2", "t=100000");
        let bcrypt = "$2b$10$abcdefghijklmnopqrstuuu4uLAxV1v0mJXtCNN9rhHMM0uzsJ1zC";
        let scrypt =
            "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E";
        for wrong in ["", "hush", &costly, &long, bcrypt, scrypt, "$argon2id$v=19$m=19456,t=2,p=1"] {
            assert_eq!(PasswordHash::from_phc(wrong), Err(NOT_CHEAP), "{wrong}");
        }
    }
}
