//! Forwarding of the visitor's query to the long URL, and parameters that a domain adds to it.
//!
//! 1. Only addresses of the web take one: in `tel:` it has no meaning, and in `mailto:` it would be
//!    header fields of the visitor's choice (RFC 6068, section 7).
//! 2. If both queries have a key, the visitor's values replace the long URL's, in its place. New
//!    keys follow in the visitor's order. Everything else stays byte for byte as it was written,
//!    because many servers distinguish `%20` and `+`.
//! 3. Keys are the same if they are once they are decoded, as servers do: `q[]` and `q%5B%5D`.
//! 4. The cost is bounded. Each pair of the long URL is looked up once among the visitor's, which
//!    are moved once. A query is dropped as a whole if it has too many pairs, or would make the URL
//!    too long for the target's server. Half of a query may mean something else.
//! 5. A parameter that is added takes the place of none: a key that is there keeps its values.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use percent_encoding::percent_decode;

use crate::reference::{Reference, is_web, without_ignored};

/// Maximum number of pairs in a visitor's query. A query with more is dropped.
const PAIRS_MAX: usize = 1_000;
/// Maximum length of a URL with a visitor's query, in bytes: the minimum that servers accept in a
/// request line (nginx, Apache: 8 KiB).
pub(crate) const FORWARDED_MAX: usize = 8 * 1024;

/// Merges the visitor's query into the long URL. The fragment stays at the end. Returns `None` if
/// the query is not forwarded: it has no pair or too many, the URL would be too long, or the long
/// URL is not an address of the web.
pub fn forward_query(long_url: &str, incoming: &str) -> Option<String> {
    let is_short = long_url.len().max(incoming.len()) <= FORWARDED_MAX;
    let count = pairs(incoming).filter(|pair| !pair.is_empty()).take(PAIRS_MAX + 1).count();
    if !is_short || !(1..=PAIRS_MAX).contains(&count) || !takes_query(long_url) {
        return None;
    }
    let (base, own, fragment) = split(long_url);
    let (kept, new) = merge(own, incoming);
    join(base, &kept.join("&"), &new, fragment)
}

/// Appends those pairs to the query of a URL whose keys it lacks, and changes nothing else. Returns
/// `None` if it lacks none of them, would be too long, or is not an address of the web.
pub fn add_query(url: &str, added: &str) -> Option<String> {
    if !takes_query(url) {
        return None;
    }
    let (base, own, fragment) = split(url);
    let has: HashSet<Cow<'_, [u8]>> = pairs(own).filter(|pair| !pair.is_empty()).map(key).collect();
    let is_new = |pair: &&str| !pair.is_empty() && !has.contains(&*key(pair));
    let new: Vec<&str> = pairs(added).filter(is_new).collect();
    if new.is_empty() { None } else { join(base, own, &new, fragment) }
}

/// Splits a URL into what stands before its query, the query, and the fragment.
fn split(url: &str) -> (&str, &str, Option<&str>) {
    let (rest, fragment) = url.split_once('#').map_or((url, None), |(rest, tail)| (rest, Some(tail)));
    let (base, own) = rest.split_once('?').unwrap_or((rest, ""));
    (base, own, fragment)
}

/// Joins the parts of a URL, with new pairs behind the query that is kept. Returns `None` if it is
/// too long.
fn join(base: &str, kept: &str, new: &[&str], fragment: Option<&str>) -> Option<String> {
    let mut url = format!("{base}?{kept}");
    if new.iter().any(|pair| !pair.is_empty()) {
        // A value may end in a question mark.
        if !kept.is_empty() && !kept.ends_with('&') {
            url.push('&');
        }
        url.push_str(&new.join("&"));
    }
    if let Some(fragment) = fragment {
        url.push('#');
        url.push_str(fragment);
    }
    (url.len() <= FORWARDED_MAX).then_some(url)
}

fn takes_query(long_url: &str) -> bool {
    Reference::split(&without_ignored(long_url)).scheme.is_some_and(is_web)
}

/// Returns the pairs in place of the long URL's own, and the visitor's other pairs. What stands
/// between two `&` is empty and has no key.
fn merge<'a>(own: &'a str, incoming: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    // The visitor's pairs by key, until the first pair of the long URL with that key.
    let mut by_key: HashMap<Cow<'_, [u8]>, Vec<&str>> = HashMap::new();
    for pair in pairs(incoming).filter(|pair| !pair.is_empty()) {
        by_key.entry(key(pair)).or_default().push(pair);
    }
    let mut kept = Vec::new();
    for pair in pairs(own) {
        match by_key.get_mut(&key(pair)).filter(|_| !pair.is_empty()) {
            Some(rivals) => kept.append(rivals),
            None => kept.push(pair),
        }
    }
    let is_new = |pair: &&str| pair.is_empty() || !by_key[&key(pair)].is_empty();
    (kept, pairs(incoming).filter(is_new).collect())
}

/// Splits a query. An empty one has no pairs.
fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|_| !query.is_empty())
}

/// Returns the key of a pair as servers decode it.
fn key(pair: &str) -> Cow<'_, [u8]> {
    let key = pair.split_once('=').map_or(pair, |(key, _)| key).as_bytes();
    if key.contains(&b'+') {
        let spaced: Vec<u8> = key.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        return Cow::Owned(percent_decode(&spaced).collect());
    }
    percent_decode(key).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_visitors_value_wins_in_place_and_new_keys_follow() {
        for (long_url, incoming, expected) in [
            ("https://x.y/", "a=1", "https://x.y/?a=1"),
            ("https://x.y", "a=1&b", "https://x.y?a=1&b"),
            ("https://x.y/?a=1&b=2", "a=3", "https://x.y/?a=3&b=2"),
            ("https://x.y/?a=1&b=2&a=9", "a=3&a=4&c=5", "https://x.y/?a=3&a=4&b=2&c=5"),
            ("https://x.y/?q=a%20b+c#top", "z=%C3%A4", "https://x.y/?q=a%20b+c&z=%C3%A4#top"),
            ("https://x.y/#/route?no=query", "a=1", "https://x.y/?a=1#/route?no=query"),
            ("https://x.y/?a=1&&b=2", "c=3", "https://x.y/?a=1&&b=2&c=3"),
            ("https://x.y/?&a=1&", "a=2&&c", "https://x.y/?&a=2&&c"),
            ("https://x.y/?", "a&&b&", "https://x.y/?a&&b&"),
            ("https://x.y/?q=why?", "a=1", "https://x.y/?q=why?&a=1"),
            ("https://x.y/??", "a=1", "https://x.y/??&a=1"),
            ("https://x.y/?a=1&=2", "&=3&&", "https://x.y/?a=1&=3"),
            ("https://x.y/?q[]=1&z", "q%5b%5D=2&q[]=3", "https://x.y/?q%5b%5D=2&q[]=3&z"),
            ("https://x.y/?a+b=1&%=2", "a%20b=3&%25=4", "https://x.y/?a%20b=3&%25=4"),
            (" HTTP://x.y", "a", " HTTP://x.y?a"),
        ] {
            assert_eq!(forward_query(long_url, incoming).as_deref(), Some(expected));
        }
    }

    #[test]
    fn only_addresses_of_the_web_take_a_query() {
        for long_url in ["tel:+1", "mailto:a@b.example", "app://open?x=1", "httpss://x.y/", "/x", "http"] {
            assert_eq!(forward_query(long_url, "a=1"), None, "{long_url}");
        }
        for nothing in ["", "&", "&&"] {
            assert_eq!(forward_query("https://x.y/?a", nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_is_added_replaces_nothing() {
        let added = "utm_source=s&utm_medium=m&a[]=1";
        let in_another_case = "https://x.y/?UTM_SOURCE&utm_medium&a%5b%5D&utm_source=s";
        for (url, expected) in [
            ("https://x.y", Some("https://x.y?utm_source=s&utm_medium=m&a[]=1")),
            ("https://x.y/#top?a", Some("https://x.y/?utm_source=s&utm_medium=m&a[]=1#top?a")),
            ("https://x.y/?", Some("https://x.y/?utm_source=s&utm_medium=m&a[]=1")),
            ("https://x.y/?b&", Some("https://x.y/?b&utm_source=s&utm_medium=m&a[]=1")),
            ("https://x.y/?b=%20+?", Some("https://x.y/?b=%20+?&utm_source=s&utm_medium=m&a[]=1")),
            ("https://x.y/?utm_medium&a[]&a[]", Some("https://x.y/?utm_medium&a[]&a[]&utm_source=s")),
            (
                "https://x.y/?%75tm_source&utm%5Fmedium=",
                Some("https://x.y/?%75tm_source&utm%5Fmedium=&a[]=1"),
            ),
            ("https://x.y/?UTM_SOURCE&utm_medium&a%5b%5D", Some(in_another_case)),
            ("https://x.y/?utm_source=1&utm_medium=2&a[]", None),
            ("mailto:a@b.example", None),
            ("app://open", None),
        ] {
            assert_eq!(add_query(url, added).as_deref(), expected, "{url}");
        }
        assert_eq!(add_query("https://x.y/?a", "&"), None);
        assert_eq!(add_query("https://x.y/", "a=1&&a=2").as_deref(), Some("https://x.y/?a=1&a=2"));
        let long = format!("https://x.y/?{}", "c".repeat(FORWARDED_MAX - "https://x.y/?&d=1".len()));
        assert_eq!(add_query(&long, "d=1").map(|url| url.len()), Some(FORWARDED_MAX));
        assert_eq!(add_query(&long, "d=12"), None);
    }

    #[test]
    fn a_query_that_is_too_long_or_has_too_many_pairs_stays_behind() {
        let long_url = "https://x.y/?a=1#top";
        let many = |count: usize| (0..count).map(|_| "b&").collect::<String>();
        let len = |long_url: &str, query: &str| forward_query(long_url, query).map(|url| url.len());
        assert!(len(long_url, &many(PAIRS_MAX)).is_some());
        assert_eq!(len(long_url, &many(PAIRS_MAX + 1)), None);
        let room = FORWARDED_MAX - long_url.len() - "&".len();
        assert_eq!(len(long_url, &"b".repeat(room)), Some(FORWARDED_MAX));
        assert_eq!(len(long_url, &"b".repeat(room + 1)), None);
        let replaced = format!("a={}", "1".repeat(room + 2));
        assert_eq!(len(long_url, &replaced), Some(FORWARDED_MAX), "what is replaced takes no room");
        let longest = format!("https://x.y/?{}", "c".repeat(FORWARDED_MAX));
        assert_eq!(len(&longest, "b"), None);
    }

    /// Reference implementation of the merge, pair by pair.
    fn by_the_words(own: &str, incoming: &str) -> (Vec<String>, Vec<String>) {
        let has_key = |pair: &&str| !pair.is_empty();
        let mut merged: Vec<&str> = Vec::new();
        let mut placed: Vec<Cow<'_, [u8]>> = Vec::new();
        for pair in pairs(own) {
            let rivals = || pairs(incoming).filter(has_key).filter(|rival| key(rival) == key(pair));
            if pair.is_empty() || rivals().next().is_none() {
                merged.push(pair);
            } else if !placed.contains(&key(pair)) {
                placed.push(key(pair));
                merged.extend(rivals());
            }
        }
        let new = pairs(incoming).filter(|pair| pair.is_empty() || !placed.contains(&key(pair)));
        (merged.into_iter().map(str::to_owned).collect(), new.map(str::to_owned).collect())
    }

    proptest! {
        #[test]
        fn pairs_are_merged_as_the_words_say(
            own in "(([a-c+]|%20|%6[1-3]){0,2}=?[12]?&){0,12}",
            incoming in "(([a-d+]|%20|%6[1-3]){0,2}=?[34]?&){0,12}",
        ) {
            let (kept, new) = merge(&own, &incoming);
            let (kept, new) = (kept.into_iter().map(str::to_owned).collect(), new.into_iter().map(str::to_owned).collect());
            prop_assert_eq!((kept, new), by_the_words(&own, &incoming));
        }

        #[test]
        fn every_key_is_there_once_it_was_added_and_no_value_of_the_url_changes(
            own in "(([a-c+?]|%20|%6[1-3]){0,2}=?[12?]?&){0,6}",
            added in "[a-d]=[34](&([a-d]|%6[1-4])=[34]){0,6}",
            fragment in "(#[a?&]{0,2})?",
        ) {
            let url = format!("https://x.y/?{own}{fragment}");
            let to = add_query(&url, &added).unwrap_or_else(|| url.clone());
            let query = to.strip_prefix("https://x.y/?").unwrap();
            let query = query.strip_suffix(fragment.as_str()).unwrap();
            let behind = query.strip_prefix(own.as_str()).unwrap();
            prop_assert!(!behind.contains("&&"));
            let has = |pair: &&str| pairs(&own).any(|has| !has.is_empty() && key(has) == key(pair));
            let lacked: Vec<&str> = pairs(&added).filter(|pair| !has(pair)).collect();
            prop_assert_eq!(behind.trim_start_matches('&'), lacked.join("&"));
            prop_assert_eq!(add_query(&to, &added), None);
        }
    }
}
