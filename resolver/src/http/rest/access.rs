//! What a call needs before a byte of its body is kept: decided from its head alone.
//!
//! 1. The key and its scope are checked first, then the body is read, within the limit of its path. Whoever has no key, or one
//!    that may not do this, holds no memory but that of a head. (Shlink reads the body first: there a malformed body is told
//!    before a missing key, here after it.)
//! 2. A call that is not in this table takes no body that matters: what it sends is thrown away, unless its key is good.

use hyper::Method;
use links::scope::Scope;

/// A long URL of 8 KiB, escaped at its worst, and all other fields fit.
pub(super) const BODY_BYTES: usize = 64 * 1024;
/// Ten thousand links of ordinary length.
const MANY_BYTES: usize = 4 * 1024 * 1024;
/// A hundred rules with twenty short conditions each.
const RULES_BYTES: usize = 256 * 1024;

/// What a call with a body needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// The scope that its key has to have; any good key, when absent.
    pub(super) scope: Option<Scope>,
    /// Bytes that it may send.
    pub(super) bytes: usize,
}

/// What a call needs to have its body read.
pub(super) fn of(method: &Method, path: &str) -> Needs {
    let segments: Vec<&str> = path.split('/').skip(3).collect();
    let (scope, bytes) = match (method, &segments[..]) {
        (&Method::POST, ["short-urls"]) => (Scope::Create, BODY_BYTES),
        (&Method::POST, ["short-urls", _, .., "redirect-rules"]) => (Scope::Edit, RULES_BYTES),
        (&Method::PATCH, ["short-urls", _, ..]) | (&Method::PUT, ["tags"]) => (Scope::Edit, BODY_BYTES),
        (&Method::POST, ["short-urls", _, .., "block"])
        | (&Method::PATCH, ["domains", _])
        | (&Method::PUT, ["targets"]) => (Scope::Admin, BODY_BYTES),
        (&Method::POST, ["reservations"]) => (Scope::Reserve, BODY_BYTES),
        (&Method::POST, ["reservations", _, "short-urls"]) => (Scope::Reserve, MANY_BYTES),
        _ => return Needs { scope: None, bytes: BODY_BYTES },
    };
    Needs { scope: Some(scope), bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_post_with_the_right_scope_sends_megabytes() {
        let path = "/rest/v3/reservations/7/short-urls";
        let needs = of(&Method::POST, path);
        assert_eq!(needs, Needs { scope: Some(Scope::Reserve), bytes: MANY_BYTES });
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(of(&method, path), Needs { scope: None, bytes: BODY_BYTES });
        }
        for path in ["/rest/v3/reservations/short-urls", "/rest/v3/reservations/1/2/short-urls", "/rest", "/"]
        {
            assert_eq!(of(&Method::POST, path).bytes, BODY_BYTES, "{path}");
        }
        let rules = of(&Method::POST, "/rest/v3/short-urls/a/b/redirect-rules");
        assert_eq!(rules, Needs { scope: Some(Scope::Edit), bytes: RULES_BYTES });
    }
}
