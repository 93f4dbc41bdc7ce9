//! Forwarding of the visitor's query to the long URL.
//!
//! 1. If both queries have a key, the visitor's values replace the long URL's, in its place. New
//!    keys follow in the visitor's order. Everything else stays byte for byte as it was written,
//!    because many servers distinguish `%20` and `+`.
//! 2. The cost is bounded. The visitor's pairs are sorted once, by key. Each pair of the long URL
//!    is looked up among them, and the pairs of one key are walked once, however often the long URL
//!    repeats the key. A query is dropped as a whole if it has too many pairs, or would make the
//!    URL too long for the target's server. Half of a query may mean something else.

use std::cmp::Ordering;

/// Maximum number of pairs in a visitor's query. A query with more is dropped.
const PAIRS_MAX: usize = 1_000;
/// Maximum length of a URL with a visitor's query, in bytes: the minimum that servers accept in a
/// request line (nginx, Apache: 8 KiB).
const URL_MAX: usize = 8 * 1024;

/// Merges the visitor's query into the long URL. The fragment stays at the end.
#[must_use]
pub fn forward_query(long_url: &str, incoming: &str) -> String {
    if long_url.len().max(incoming.len()) > URL_MAX || pairs(incoming).nth(PAIRS_MAX).is_some() {
        return long_url.to_owned();
    }
    let (rest, fragment) =
        long_url.split_once('#').map_or((long_url, None), |(rest, tail)| (rest, Some(tail)));
    let (base, own) = rest.split_once('?').unwrap_or((rest, ""));

    let mut url = String::with_capacity(long_url.len() + incoming.len() + 2);
    url.push_str(base);
    let mut separator = '?';
    merge(own, incoming, |pair| {
        url.push(separator);
        url.push_str(pair);
        separator = '&';
    });
    if let Some(fragment) = fragment {
        url.push('#');
        url.push_str(fragment);
    }
    if url.len() > URL_MAX { long_url.to_owned() } else { url }
}

/// A pair of the visitor's query.
struct Incoming<'a> {
    key: &'a str,
    position: usize,
    pair: &'a str,
}

impl Incoming<'_> {
    fn compare(&self, key: &str) -> Ordering {
        #[cfg(test)]
        tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
        self.key.cmp(key)
    }
}

fn merge<'a>(own: &'a str, incoming: &'a str, mut push: impl FnMut(&'a str)) {
    let given = pairs(incoming).enumerate();
    let mut by_key: Vec<Incoming<'_>> =
        given.map(|(position, pair)| Incoming { key: key(pair), position, pair }).collect();
    // Groups the pairs of one key, in the order in which they came.
    by_key.sort_unstable_by_key(|one| (one.key, one.position));
    let mut is_placed = vec![false; by_key.len()];
    for pair in pairs(own) {
        let key = key(pair);
        let first = by_key.partition_point(|one| one.compare(key).is_lt());
        match by_key.get(first).filter(|one| one.compare(key).is_eq()) {
            None => push(pair),
            Some(one) if is_placed[one.position] => {}
            Some(_) => {
                for rival in by_key[first..].iter().take_while(|one| one.compare(key).is_eq()) {
                    is_placed[rival.position] = true;
                    push(rival.pair);
                }
            }
        }
    }
    for (position, pair) in pairs(incoming).enumerate() {
        if !is_placed[position] {
            push(pair);
        }
    }
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

fn key(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    thread_local! {
        /// Number of key comparisons on this test's thread.
        pub(super) static COMPARISONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn the_visitors_value_wins_in_place_and_new_keys_follow() {
        for (long_url, incoming, expected) in [
            ("https://x.y/", "a=1", "https://x.y/?a=1"),
            ("https://x.y", "a=1&b", "https://x.y?a=1&b"),
            ("https://x.y/?a=1&b=2", "a=3", "https://x.y/?a=3&b=2"),
            ("https://x.y/?a=1&b=2&a=9", "a=3&a=4&c=5", "https://x.y/?a=3&a=4&b=2&c=5"),
            ("https://x.y/?q=a%20b+c#top", "z=%C3%A4", "https://x.y/?q=a%20b+c&z=%C3%A4#top"),
            ("https://x.y/#/route?no=query", "a=1", "https://x.y/?a=1#/route?no=query"),
            ("https://x.y/?a", "&&", "https://x.y/?a"),
        ] {
            assert_eq!(forward_query(long_url, incoming), expected);
        }
    }

    #[test]
    fn a_query_that_is_too_long_or_has_too_many_pairs_stays_behind() {
        let long_url = "https://x.y/?a=1#top";
        let many = |count: usize| (0..count).map(|_| "b&").collect::<String>();
        assert!(forward_query(long_url, &many(PAIRS_MAX)).len() > long_url.len());
        assert_eq!(forward_query(long_url, &many(PAIRS_MAX + 1)), long_url);
        let room = URL_MAX - long_url.len() - "&".len();
        assert_eq!(forward_query(long_url, &"b".repeat(room)).len(), URL_MAX);
        assert_eq!(forward_query(long_url, &"b".repeat(room + 1)), long_url);
        let replaced = format!("a={}", "1".repeat(room + 2));
        assert_eq!(forward_query(long_url, &replaced).len(), URL_MAX, "what is replaced takes no room");
        let longest = format!("https://x.y/?{}", "c".repeat(URL_MAX));
        assert_eq!(forward_query(&longest, "b"), longest, "what is stored is given as it is");
    }

    #[test]
    fn a_key_that_both_repeat_is_walked_once() {
        let (own, incoming) = (4_080, PAIRS_MAX - 1);
        COMPARISONS.set(0);
        let mut pushes = 0;
        merge(&"a&".repeat(own), &"a&".repeat(incoming), |_| pushes += 1);
        assert_eq!(pushes, incoming);
        // Each lookup bisects fewer than 1,024 pairs, and compares the one that it finds.
        let most = own * 12 + incoming;
        assert!(COMPARISONS.get() <= most, "{} comparisons, more than {most}", COMPARISONS.get());
    }

    /// Reference implementation of the merge, pair by pair.
    fn by_the_words(own: &str, incoming: &str) -> Vec<String> {
        let mut merged: Vec<&str> = Vec::new();
        let mut placed: Vec<&str> = Vec::new();
        for pair in pairs(own) {
            let rivals = || pairs(incoming).filter(|rival| key(rival) == key(pair));
            if rivals().next().is_none() {
                merged.push(pair);
            } else if !placed.contains(&key(pair)) {
                placed.push(key(pair));
                merged.extend(rivals());
            }
        }
        merged.extend(pairs(incoming).filter(|pair| !placed.contains(&key(pair))));
        merged.into_iter().map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn pairs_are_merged_as_the_words_say(own in "([a-c]{0,2}=?[12]?&){0,12}", incoming in "([a-d]{0,2}=?[34]?&){0,12}") {
            let mut merged = Vec::new();
            merge(&own, &incoming, |pair| merged.push(pair.to_owned()));
            prop_assert_eq!(merged, by_the_words(&own, &incoming));
        }
    }
}
