//! Allowed schemes of long URLs.
//!
//! 1. The operator's list decides (`--allowed-schemes`). The default has `http` and `https`, and
//!    the schemes of links in mails and on paper, `mailto` and `tel`. Links into apps have schemes
//!    of their own, which the operator adds.
//! 2. Some schemes are never allowed, whatever the list says. In the visitor's browser they run
//!    script, or show content that no other site served.
//!
//! Rejected: allowing any scheme, as Shlink does. Several desktop programs register schemes that
//! take commands, and a short link hides the scheme of its target.

use std::{fmt, sync::Arc};

use crate::Invalid;

const DEFAULT: [&str; 4] = ["http", "https", "mailto", "tel"];
const NEVER: [&str; 9] =
    ["javascript", "data", "file", "vbscript", "blob", "about", "filesystem", "view-source", "jar"];
const SCHEMES_MAX: usize = 100;
const MAX_LEN: usize = 64;

/// The operator's list of allowed schemes, in lower case. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schemes(Arc<[String]>);

/// An empty list would allow no link, and a long one would take long to search.
const COUNT: Invalid = Invalid::because("expected 1 to 100 schemes");
/// Not a scheme by RFC 3986, section 3.1.
const NAME: Invalid =
    Invalid::because("expected a letter, then letters, digits, +, - or ., at most 64 in all, such as https");

impl Schemes {
    /// Validates a list of schemes. Case, surrounding white space and duplicates do not matter.
    pub fn parse(names: &[String]) -> Result<Self, Invalid> {
        if names.is_empty() || names.len() > SCHEMES_MAX {
            return Err(COUNT);
        }
        let mut schemes = Vec::with_capacity(names.len());
        for name in names {
            let name = name.trim().to_ascii_lowercase();
            if name.len() > MAX_LEN || !is_scheme(&name) {
                return Err(NAME);
            }
            if acts_in_the_browser(&name) {
                return Err(never());
            }
            if !schemes.contains(&name) {
                schemes.push(name);
            }
        }
        Ok(Self(schemes.into()))
    }

    /// Returns `true` if long URLs may have this scheme, which is in lower case.
    pub fn allow(&self, scheme: &str) -> bool {
        self.0.iter().any(|allowed| allowed == scheme)
    }
}

/// Refuses a scheme that runs script or shows content that no site served.
fn never() -> Invalid {
    format!("expected none of {}: their links act in the visitor's browser", NEVER.join(", ")).into()
}

impl Default for Schemes {
    fn default() -> Self {
        Self(DEFAULT.map(str::to_owned).into())
    }
}

impl fmt::Display for Schemes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// Returns `true` for a scheme by RFC 3986, section 3.1.
pub(crate) fn is_scheme(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(rest)
}

/// Returns `true` if a scheme in lower case runs script or shows what no site served.
pub(crate) fn acts_in_the_browser(scheme: &str) -> bool {
    NEVER.contains(&scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(names: &[&str]) -> Result<Schemes, Invalid> {
        Schemes::parse(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_list_is_what_is_allowed_and_script_never_is() {
        let schemes = parse(&["https", " Shlink ", "shlink"]).unwrap();
        assert_eq!(schemes.to_string(), "https, shlink");
        assert!(schemes.allow("shlink") && !schemes.allow("http"));
        for scheme in NEVER {
            assert_eq!(parse(&["https", &scheme.to_uppercase()]), Err(never()), "{scheme}");
            assert!(!Schemes::default().allow(scheme), "{scheme}");
        }
        for wrong in ["", "1a", "a b", "a:", "ä", "*", &"a".repeat(MAX_LEN + 1)] {
            assert_eq!(parse(&[wrong]), Err(NAME), "{wrong:?}");
        }
        assert_eq!(parse(&[]), Err(COUNT));
        assert_eq!(parse(&["a"; SCHEMES_MAX + 1]), Err(COUNT));
    }
}
