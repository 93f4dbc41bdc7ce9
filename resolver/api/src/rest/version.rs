//! `/rest/v1` and `/rest/v2`, which older clients of Shlink use. Shlink answers them like v3.
//!
//! At the level that is served here, problems have the same types in all three versions (Shlink's
//! own tests check it), so the versions differ in their paths only. Additions below a segment of
//! Shlink, such as the bulk call, have all three versions. Those with a first segment of their own,
//! such as the audit log, are below v3 alone.

use std::borrow::Cow;

use hyper::Uri;

/// The first segments of Shlink's paths below a version.
const OF_SHLINK: [&str; 6] = ["short-urls", "tags", "domains", "visits", "health", "mercure-info"];

/// Returns the path of v3 for one of any version; any other path unchanged.
pub(super) fn path(path: &str) -> Cow<'_, str> {
    let below = path.strip_prefix("/rest/v1/").or_else(|| path.strip_prefix("/rest/v2/"));
    let known = below.filter(|below| below.split('/').next().is_some_and(|name| OF_SHLINK.contains(&name)));
    known.map_or(Cow::Borrowed(path), |below| Cow::Owned(format!("/rest/v3/{below}")))
}

/// Returns the URI of v3 for one of any version; any other URI unchanged.
pub(super) fn address(uri: Uri) -> Uri {
    let Cow::Owned(path) = path(uri.path()) else { return uri };
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    // A valid path stays valid with another first segment.
    Uri::try_from(path + &query).unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_are_the_third_below_the_segments_of_shlink() {
        for (older, address) in [
            ("/rest/v1/short-urls?page=2", "/rest/v3/short-urls?page=2"),
            ("/rest/v2/short-urls/a%2Fb/visits", "/rest/v3/short-urls/a%2Fb/visits"),
            ("/rest/v2/tags/stats", "/rest/v3/tags/stats"),
            ("/rest/v1/short-urls/bulk", "/rest/v3/short-urls/bulk"),
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
