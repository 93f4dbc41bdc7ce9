//! Scopes of API keys.
//!
//! `domains` is a separate scope, because a domain is a host name, and the key that adds it decides
//! where that host's visitors are sent. Keys older than this scope do not have it, unless they have
//! `admin`. No migration adds it: a resolver of the previous release could not read such a key, and
//! would refuse it while both releases run side by side.

use std::{fmt, str::FromStr};

use crate::Invalid;

codes::named_values! {
    /// A kind of action that an API key may be allowed, by its name in flags and the database.
    pub enum Scope {
        /// Create links.
        Create => "create",
        /// Read links.
        Read => "read",
        /// Edit links and tags.
        Edit => "edit",
        /// Delete links and tags.
        Delete => "delete",
        /// Read visits.
        Visits => "visits",
        /// Reserve codes before their links exist, and fill the reservations.
        Reserve => "reserve",
        /// Add domains, by creating links on them.
        Domains => "domains",
        /// All actions, including those on objects of other keys.
        Admin => "admin",
    }
}

impl Scope {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Set of scopes of an API key, one bit for each. Only a set of a later release is empty here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns the scope `admin`, which includes all others.
    pub fn admin() -> Self {
        Self(Scope::Admin.bit())
    }

    /// Returns the set of one scope.
    pub fn only(scope: Scope) -> Self {
        Self(scope.bit())
    }

    /// Returns `true` if a key with these scopes may perform actions of `scope`.
    pub fn allow(&self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Parses stored scopes. Those of a later release are left out: the key may do less here.
    pub fn from_stored(text: &str) -> Self {
        let known = text.split(',').filter_map(|name| Scope::parse(name.trim()));
        Self(known.fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl FromStr for Scopes {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let add = |bits, name: &str| Scope::parse(name.trim()).map(|scope| bits | scope.bit());
        let names = "create, read, edit, delete, visits, reserve, domains and admin";
        let invalid = || format!("expected one or more of {names}, separated by commas, got {text:?}");
        text.split(',').try_fold(0, add).map(Self).ok_or_else(|| invalid().into())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |scope: &Scope| self.0 & scope.bit() != 0;
        let names: Vec<_> = Scope::ALL.into_iter().filter(has).map(Scope::as_str).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_written_and_checked() {
        let scopes: Scopes = "reserve, create,create".parse().unwrap();
        assert_eq!(scopes.to_string(), "create,reserve");
        assert_eq!(scopes.to_string().parse(), Ok(scopes));
        assert!(scopes.allow(Scope::Create) && scopes.allow(Scope::Reserve));
        assert!(!scopes.allow(Scope::Read) && !scopes.allow(Scope::Admin));
        assert!(Scope::ALL.into_iter().all(|scope| Scopes::admin().allow(scope)));
        for wrong in ["", "create,", "Create", "all"] {
            let error = wrong.parse::<Scopes>().unwrap_err().to_string();
            assert!(error.ends_with(&format!("got {wrong:?}")), "{error}");
        }
    }
}
