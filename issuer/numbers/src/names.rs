//! Names from outside the process that become part of ledger keys. Constructors validate them once.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};

use crate::Invalid;

/// Defines a validated string newtype. The text is reference-counted, because a name is copied into
/// every block, record and transaction.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal, $max:literal, $allowed:expr, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates and wraps a name, which must not be empty, too long or have a character
            /// that is not allowed.
            pub fn new(name: impl Into<String>) -> Result<Self, Invalid> {
                let name = name.into();
                let allowed: fn(u8) -> bool = $allowed;
                if !name.is_empty() && name.len() <= $max && name.bytes().all(allowed) {
                    return Ok(Self(name.into()));
                }
                let got: String = name.chars().take(80).collect();
                Err(format!("{}: expected {}, got {got:?}", $field, $expected).into())
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;

            fn try_from(name: String) -> Result<Self, Invalid> {
                Self::new(name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

name!(
    /// The name of an independent number space.
    Namespace,
    "namespace",
    64,
    |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'),
    "1 to 64 characters of a-z, 0-9, '-' and '_'"
);
name!(
    /// The stable name of a holder of blocks.
    HolderId,
    "holder",
    128,
    |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    "1 to 128 characters of A-Z, a-z, 0-9, '-', '_' and '.'"
);
name!(
    /// A random id of each start of a holder. A repeated registration has the same.
    Instance,
    "instance",
    64,
    |byte| byte.is_ascii_alphanumeric() || byte == b'-',
    "1 to 64 characters of A-Z, a-z, 0-9 and '-'"
);

name!(
    /// The history of the database that a holder writes to; opaque to the issuer. It changes when
    /// the database fails over to a copy that may have lost the last links.
    StoreEpoch,
    "store_epoch",
    128,
    |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'),
    "1 to 128 characters of A-Z, a-z, 0-9, '-', '_', '.' and ':'"
);

name!(
    /// The identity of a ledger: the holder id and the instance of the first registration with it.
    /// A copy of a ledger, as from a backup, has the same id.
    LedgerId,
    "ledger",
    200,
    |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    "1 to 200 characters of A-Z, a-z, 0-9, '-', '_' and '.'"
);

impl HolderId {
    /// Beginning of the names of reservations.
    pub const RESERVATION: &str = "reservation-";

    /// Returns whether the holder is a reservation, and no process.
    pub fn is_reservation(&self) -> bool {
        self.as_str().starts_with(Self::RESERVATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_ledger_key_is_refused() {
        for bad in ["", "a/b", "A", "ü", "a b", &"x".repeat(65)] {
            assert!(Namespace::new(bad).is_err(), "{bad:?}");
        }
        assert!(Namespace::new("web-6_a").is_ok());
        assert!(HolderId::new("resolver-0.shortmint").is_ok());
        assert!(HolderId::new("resolver/0").is_err());
    }
}
