//! Requests that a browser sends ahead: prefetches, prerenders and thumbnails.

use hyper::header::HeaderName;

/// The headers in which browsers say that they fetch ahead, in lower case: that of the Fetch
/// standard, those of Chromium and Safari before it, and Firefox's.
pub(crate) static HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("sec-purpose"),
    HeaderName::from_static("purpose"),
    HeaderName::from_static("x-purpose"),
    HeaderName::from_static("x-moz"),
];
/// Values of these headers. Parameters may follow, as in `prefetch;prerender;anonymous-client-ip`.
const PURPOSES: [&[u8]; 4] = [b"prefetch", b"prerender", b"preview", b"instant"];

/// Returns whether the value of one of [`HEADERS`] says that the request is sent ahead.
pub(crate) fn is_named_in(value: &[u8]) -> bool {
    let mut words = value.split(|byte| !byte.is_ascii_alphanumeric());
    words.any(|word| PURPOSES.iter().any(|purpose| word.eq_ignore_ascii_case(purpose)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_are_read_in_every_spelling() {
        for value in [
            "prefetch",
            "Prefetch",
            " PREFETCH ",
            "prefetch;prerender",
            "prefetch; anonymous-client-ip",
            "\"prefetch\"",
            "other, prefetch",
            "prerender",
            "preview",
        ] {
            assert!(is_named_in(value.as_bytes()), "{value}");
        }
        for value in ["", "navigate", "prefetched", "document"] {
            assert!(!is_named_in(value.as_bytes()), "{value}");
        }
    }
}
