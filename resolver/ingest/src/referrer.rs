//! Hosts of referrers.

use url::Url;

/// Returns the host of a referrer, in lower case and without `www.`; empty for none. A referrer that
/// is no URL with a host, such as `android-app://…`, counts by its beginning. Counters cut it.
pub(crate) fn host(referrer: &[u8]) -> String {
    let text = String::from_utf8_lossy(referrer);
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let host = Url::parse(text).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase));
    let host = host.unwrap_or_else(|| text.split(['/', '?', '#']).next().unwrap_or_default().to_owned());
    let host = host.strip_prefix("www.").unwrap_or(&host);
    host.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referrers_count_by_their_host() {
        for (referrer, expected) in [
            ("", ""),
            ("https://www.Example.com/a?b", "example.com"),
            ("http://example.com:8080/", "example.com"),
            ("android-app://com.slack/", "com.slack"),
            ("example.org/a", "example.org"),
            ("\u{1}\n", ""),
            ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ] {
            assert_eq!(host(referrer.as_bytes()), expected, "{referrer}");
        }
        assert_eq!(host(&[0xff, 0xfe]), "\u{fffd}\u{fffd}");
    }
}
