//! What a call needs before a byte of its body is kept: decided from its head alone; and whether its key is good.
//!
//! 1. The key and its scope are checked first, then the body is read, within the limit of its path. Whoever has no key, or one
//!    that may not do this, holds no memory but that of a head. (Shlink reads the body first: there a malformed body is told
//!    before a missing key, here after it.)
//! 2. A call that is not in this table takes no body that matters: what it sends is thrown away, unless its key is good.

use std::{net::IpAddr, sync::Arc};

use hyper::Method;
use links::{
    api_key::{Grant, KeyHash},
    scope::Scope,
};

use super::Problem;
use crate::http::{App, calls::Share};

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

/// A key that may see everything, or none: what follows concerns all domains and all links.
pub(super) fn unlimited(grant: Grant) -> Result<Grant, Problem> {
    if grant.limits.hides_links() { Err(Problem::LimitedKey) } else { Ok(grant) }
}

/// A key, if it may do this.
pub(in crate::http) fn allowed(grant: Grant, scope: Scope) -> Result<Grant, Problem> {
    if grant.scopes.allow(scope) { Ok(grant) } else { Err(Problem::Forbidden { scope }) }
}

/// The key, and what is left to the caller. It may run anywhere: the store is asked on the daemon's own runtime.
pub(in crate::http) async fn authenticate(
    app: &Arc<App>,
    client: IpAddr,
    key: Option<&[u8]>,
) -> Result<(Grant, Option<Share>), Problem> {
    let of_client = app.calls.spend_of_client(client).map_err(Problem::TooManyCalls)?;
    let hash = KeyHash::of(key.filter(|key| !key.is_empty()).ok_or(Problem::NoKey)?);
    let answered = app.keys.answered(&hash);
    let is_known = matches!(answered, Some(Some(_))) || app.keys.remembers(&hash);
    if !is_known {
        // Before it is looked for: a guess must not be quicker than its refusal, nor cost a query when there were too many.
        app.calls.spend_of_wrong_keys(client).await.map_err(Problem::TooManyCalls)?;
    }
    let found = match answered {
        Some(found) => found,
        None => find_key(app, hash).await?,
    };
    let mut grant = found.ok_or(Problem::WrongKey)?;
    if !is_known {
        app.calls.give_back_wrong_key(client);
    }
    if let Some(domain) = grant.limits.domain {
        // The operator may have named the default domain's own name.
        grant.limits.domain = Some(app.directory.settled(domain));
    }
    let of_key = app.calls.spend_of_key(&grant).map_err(Problem::TooManyCalls)?;
    Ok((grant, of_key.or(of_client)))
}

async fn find_key(app: &Arc<App>, hash: KeyHash) -> Result<Option<Grant>, Problem> {
    let asking = Arc::clone(app);
    let found = app.runtime.spawn(async move { asking.keys.find(&*asking.store, hash).await }).await;
    found.map_err(|_| Problem::Internal)?.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "look up an API key");
        Problem::Unavailable
    })
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
