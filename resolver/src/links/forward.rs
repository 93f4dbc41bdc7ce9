//! The visitor's query goes along with the redirect.
//!
//! A key that both have takes the visitor's value, in the long URL's place; new keys follow in their order. What is not
//! touched stays as it was written, byte for byte: many servers care about the difference between `%20` and `+`.

/// The long URL with the visitor's query merged in; the fragment stays at the end.
#[must_use]
pub fn forward_query(long_url: &str, incoming: &str) -> String {
    let (rest, fragment) =
        long_url.split_once('#').map_or((long_url, None), |(rest, tail)| (rest, Some(tail)));
    let (base, own) = rest.split_once('?').unwrap_or((rest, ""));

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

    let mut url = String::with_capacity(long_url.len() + incoming.len() + 2);
    url.push_str(base);
    for (index, pair) in merged.iter().enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        url.push_str(pair);
    }
    if let Some(fragment) = fragment {
        url.push('#');
        url.push_str(fragment);
    }
    url
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

fn key(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key)
}

#[cfg(test)]
mod tests {
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
            ("https://x.y/?a", "&&", "https://x.y/?a"),
        ] {
            assert_eq!(forward_query(long_url, incoming), expected);
        }
    }
}
