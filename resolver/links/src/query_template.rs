//! Parameters that the redirects of a domain add to where they lead, such as those of campaigns.
//!
//! 1. Placeholders stand for what a redirect knows without a read: the name of the link and that of
//!    the domain. Tags are not cached with a link, and titles are its owner's own notes.
//! 2. Only what the destination lacks is added ([`location_with_added`]): the long URL and the
//!    visitor's query come first.
//! 3. Values are escaped, so that no name adds parameters of its own.
//!
//! [`location_with_added`]: crate::location_with_added

use percent_encoding::utf8_percent_encode;
use serde::{Deserialize, Serialize};

use crate::{ESCAPED_IN_PATHS, Invalid, text_value::text_value};

/// Placeholder for the name of the link: its code or slug.
const CODE: &str = "{code}";
/// Placeholder for the domain that the visitor has requested.
const DOMAIN: &str = "{domain}";
const NOT_A_TEMPLATE: Invalid = Invalid::because(
    "expected parameters of at most 512 bytes such as utm_source={domain}&utm_campaign={code}, and no \
     address in front of them",
);
const PLACEHOLDERS: Invalid = Invalid::because(
    "expected no placeholders but {code} and {domain}, in values, in small letters, and with single braces \
     that are not escaped",
);
const CHARACTERS: Invalid = Invalid::because("expected no white space and no #: write a space as %20 or +");

/// Parameters with placeholders in their values.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryTemplate(Box<str>);

text_value!(QueryTemplate);

impl QueryTemplate {
    /// Maximum length in bytes.
    pub const MAX_LEN: usize = 512;

    /// Parses a template. What joins it to an address or to other parameters is dropped: spaces
    /// around it, a question mark or ampersands in front, and ampersands behind.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let text = text.strip_prefix('?').unwrap_or(text).trim_matches('&');
        // Not by nothing, which could make a placeholder of what stands around one.
        let filled = text.replace(CODE, "-").replace(DOMAIN, "-");
        let has_brace = |text: &str| text.contains(['{', '}']);
        let small = text.to_ascii_lowercase();
        let has_escaped = ["%7bcode%7d", "%7bdomain%7d"].iter().any(|escaped| small.contains(escaped));
        // The key of what was copied with an address, or from HTML, has a mark.
        let is_key = |key: &str| !key.is_empty() && !key.contains(['?', ';']);
        let keys = || text.split('&').map(|pair| pair.split_once('=').map(|(key, _)| key));
        if text.len() > Self::MAX_LEN || !keys().all(|key| key.is_some_and(is_key)) {
            Err(NOT_A_TEMPLATE)
        } else if has_brace(&filled) || has_escaped || keys().flatten().any(has_brace) {
            Err(PLACEHOLDERS)
        } else if filled.contains(|one: char| one.is_control() || one.is_whitespace() || one == '#') {
            Err(CHARACTERS)
        } else {
            Ok(Self(text.into()))
        }
    }

    /// Returns the parameters for a link with this name on this domain.
    pub fn fill(&self, code: &str, domain: &str) -> String {
        let escaped = |value: &str| utf8_percent_encode(value, ESCAPED_IN_PATHS).to_string();
        // A value has no braces, so it is not filled in its turn.
        self.0.replace(CODE, &escaped(code)).replace(DOMAIN, &escaped(domain))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::location_with_added;

    #[test]
    fn a_template_has_parameters_with_placeholders_in_their_values() {
        let campaign = "utm_source={domain}&utm_content=x-{code}-{code}";
        for text in ["a=1", campaign, "a=&b==?", " \u{e9}=\u{fc} ", "a=%20+", "a=%7B1%7D"] {
            assert_eq!(QueryTemplate::parse(text).unwrap().as_str(), text.trim(), "{text}");
        }
        for text in ["?a=1&b=2", "&a=1&b=2", " ?&a=1&b=2& ", "a=1&b=2&&"] {
            assert_eq!(QueryTemplate::parse(text).unwrap().as_str(), "a=1&b=2", "{text}");
        }
        for text in ["", " ", "?", "a", "=1", "??a=1", "a=1&&b=2", "https://e.test/?a=1", "a=1&amp;b=2"] {
            assert_eq!(QueryTemplate::parse(text), Err(NOT_A_TEMPLATE), "{text}");
        }
        for text in ["a=1#b", "a=1 2", "a=\u{a0}1", "a=\u{7}"] {
            assert_eq!(QueryTemplate::parse(text), Err(CHARACTERS), "{text}");
        }
        for text in [
            "{code}=1",
            "x{domain}=1",
            "a={tag}",
            "a={",
            "a=}",
            "a={{code}}",
            "a={co{domain}de}",
            "a={CODE}",
            "a=%7Bcode%7d",
        ] {
            assert_eq!(QueryTemplate::parse(text), Err(PLACEHOLDERS), "{text}");
        }
        let long = |len: usize| QueryTemplate::parse(&format!("a={}", "b".repeat(len - 2)));
        assert!(long(QueryTemplate::MAX_LEN).is_ok());
        assert!(long(QueryTemplate::MAX_LEN + 1).is_err());
    }

    #[test]
    fn names_are_escaped() {
        let template = QueryTemplate::parse("s={domain}&c={code}").unwrap();
        for (code, domain, expected) in [
            ("abc", "s.test", "s=s.test&c=abc"),
            ("a&b=c#d", "s.test:8080", "s=s.test%3A8080&c=a%26b%3Dc%23d"),
            ("summer/2026+", "x", "s=x&c=summer/2026%2B"),
            ("\u{77ed}", "x", "s=x&c=%E7%9F%AD"),
            ("{domain}%20", "x", "s=x&c=%7Bdomain%7D%2520"),
            ("*", "x", "s=x&c=%2A"),
        ] {
            assert_eq!(template.fill(code, domain), expected, "{code}");
        }
    }

    proptest! {
        #[test]
        fn a_server_reads_the_name_and_no_other_parameter(code in "[ -~\u{fc}\u{1f600}]{1,8}") {
            let template = QueryTemplate::parse("c={code}").unwrap();
            let filled = template.fill(&code, "s.test");
            let to = location_with_added("https://e.example/?a=1#f", &filled).unwrap();
            let url = url::Url::parse(&to).unwrap();
            let read: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(read, vec![("a".to_owned(), "1".to_owned()), ("c".to_owned(), code)]);
            prop_assert_eq!(url.fragment(), Some("f"));
        }
    }
}
