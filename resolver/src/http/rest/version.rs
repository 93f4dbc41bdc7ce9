//! `/rest/v1` and `/rest/v2`: older clients of Shlink ask there, and Shlink answers them as it answers v3.
//!
//! Shlink of the level that is served here gives its problems the same types in all three versions (its own tests say so), so that the versions
//! differ in their paths only. Additions of ours are below v3 alone.

use std::borrow::Cow;

use hyper::Uri;

/// What Shlink has below a version.
const OF_SHLINK: [&str; 6] = ["short-urls", "tags", "domains", "visits", "health", "mercure-info"];
const V3: &str = "/rest/v3/";

/// A path of any version, as v3 has it; any other one as it is.
pub(super) fn path(path: &str) -> Cow<'_, str> {
    let below = path.strip_prefix("/rest/v1/").or_else(|| path.strip_prefix("/rest/v2/"));
    let known = below.filter(|below| below.split('/').next().is_some_and(|name| OF_SHLINK.contains(&name)));
    known.map_or(Cow::Borrowed(path), |below| Cow::Owned(format!("{V3}{below}")))
}

/// An address of any version, as v3 has it; any other one as it is.
pub(super) fn address(uri: Uri) -> Uri {
    let Cow::Owned(path) = path(uri.path()) else { return uri };
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    // What was a path of a URI is one with another first segment, too.
    Uri::try_from(path + &query).unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_are_the_third_and_have_no_additions() {
        for (older, address) in [
            ("/rest/v1/short-urls?page=2", "/rest/v3/short-urls?page=2"),
            ("/rest/v2/short-urls/a%2Fb/visits", "/rest/v3/short-urls/a%2Fb/visits"),
            ("/rest/v2/tags/stats", "/rest/v3/tags/stats"),
            ("/rest/v2/audit", "/rest/v2/audit"),
            ("/rest/v4/tags", "/rest/v4/tags"),
            ("/rest/v1", "/rest/v1"),
            ("/rest/v3/tags", "/rest/v3/tags"),
            ("/restaurant", "/restaurant"),
        ] {
            assert_eq!(super::address(Uri::from_static(older)), address, "{older}");
        }
    }
}
