//! Names at the root of a host that have a meaning of their own. A link that had one would speak
//! for the whole host: `ads.txt` names who may sell its advertising space, `wpad.dat` the proxy of
//! its browsers, `google….html` its owner.
//!
//! 1. Only the first segment counts, regardless of case: some of those that fetch these names ask
//!    for another case, and a file system of the host may not tell them apart.
//! 2. New slugs are refused, whichever way they come. A link that has such a name already keeps
//!    redirecting, except at the paths that the service answers itself.
//! 3. What came after RFC 8615 is below `.well-known`, which is reserved as a whole. The others are
//!    the older names of the same things, and what browsers, crawlers, advertising networks,
//!    authorities and mail programs fetch without being told.

/// First segments of the service's own paths.
pub(super) const OUR_FIRST: [&str; 7] =
    ["rest", "robots.txt", "favicon.ico", ".well-known", "manage", "cluster", "_pages"];

/// Names whose meaning is agreed upon.
const NAMES: [&str; 4] = [
    // Advertising (IAB Tech Lab), publishers and crawlers.
    "ads.txt app-ads.txt sellers.json buyers.json ads.cert adagents.json trust.txt carbon.txt humans.txt \
     security.txt dnt-policy.txt llms.txt llms-full.txt ai.txt agents.txt agents.json",
    // Applications that open links of a host, and proofs of who owns it.
    "apple-app-site-association apple-developer-merchantid-domain-association \
     apple-developer-domain-association.txt assetlinks.json bingsiteauth.xml livesearchsiteauth.xml \
     sogousiteverification.txt keybase.txt fileauth.txt",
    // Policies and settings of browsers and of what once ran in them.
    "crossdomain.xml clientaccesspolicy.xml browserconfig.xml manifest.json manifest.webmanifest \
     site.webmanifest app.webmanifest opensearch.xml sw.js service-worker.js serviceworker.js \
     firebase-messaging-sw.js onesignalsdkworker.js safari-pinned-tab.svg w3c",
    // Settings of networks and of mail programs, and paths that proxies in front answer.
    "wpad.dat proxy.pac autodiscover microsoft-server-activesync cdn-cgi",
];

/// Families of names: what they begin and end with.
const FAMILIES: &str = "favicon.* favicon-*.png apple-touch-icon*.png mstile-*.png sitemap*.xml \
                        sitemap*.xml.gz sitemap*.txt sitemap*.txt.gz sitemap-*.html google*.html \
                        yandex_*.html yandex_*.txt baidu_verify_*.html naver*.html pinterest-*.html";

/// Returns whether a path, without its first slash, is one that the operator has given to another
/// API: the path itself, or with a slash at its end everything below it.
pub fn is_given_to(api: &str, path: &str) -> bool {
    if api.ends_with('/') { path.starts_with(api) } else { path == api }
}

/// Returns whether a first segment is a path of the service in any case.
pub(super) fn is_ours(first: &str) -> bool {
    OUR_FIRST.iter().any(|name| name.eq_ignore_ascii_case(first))
}

/// Returns whether a first segment has a meaning of its own on every host.
pub(super) fn is_well_known(first: &str) -> bool {
    let first = first.to_ascii_lowercase();
    let is_of = |family: &str| {
        let (begin, end) = family.split_once('*').unwrap_or((family, ""));
        first.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end))
    };
    NAMES.iter().any(|names| names.split(' ').any(|name| name == first)) || FAMILIES.split(' ').any(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_meaning_are_known_in_any_case_and_words_are_none() {
        let known = "ads.txt App-Ads.TXT security.txt sitemap.xml sitemap_index.xml Sitemap-News-2.xml.gz \
                     apple-app-site-association apple-touch-icon-precomposed.png \
                     apple-touch-icon-180x180.png favicon.svg google0123456789abcdef.html Autodiscover \
                     wpad.dat";
        for name in known.split(' ') {
            assert!(is_well_known(name), "{name}");
        }
        let words = "ads ads.txt2 txt sitemap sitemap. sw google manifest security x.xml";
        for name in words.split(' ') {
            assert!(!is_well_known(name), "{name}");
        }
        assert!(is_ours("Manage") && is_ours("ROBOTS.txt") && !is_ours("manager"));
    }
}
