//! Target URL of a link, validated once, at creation.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::{Host, Url};

use super::{OwnAddress, Schemes};
use crate::{
    destination::{HOST_MAX, name_of},
    reference::{Reference, is_web},
    text_value::text_value,
};

/// Returns whether a character may surround a pasted URL: white space, or one without width.
fn is_around(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}')
}

/// A validated URL, kept as it was written apart from white space around it. Serialized as text,
/// the form of the column that links have for it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LongUrl(Box<str>);

text_value!(LongUrl);

/// Why a URL was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LongUrlError {
    /// Longer than [`LongUrl::MAX_LEN`], so that a redirect could not carry it.
    #[error("expected at most {} bytes", LongUrl::MAX_LEN)]
    TooLong,
    /// Control characters or white space, which could inject a header or a log line.
    #[error("control characters and white space inside are not allowed")]
    Characters,
    /// Host longer than any DNS name. Parsing one takes milliseconds.
    #[error("expected a host of at most {HOST_MAX} characters")]
    Host,
    /// Not an absolute URL by the WHATWG URL Standard.
    #[error("expected an absolute URL such as https://example.com/page")]
    Malformed,
    /// Scheme that the operator has not allowed.
    #[error("expected a scheme that the operator has allowed (--allowed-schemes)")]
    Scheme,
    /// User name or password, which the redirect would publish.
    #[error("remove the user name and password")]
    Credentials,
    /// Host that people and browsers would read differently.
    #[error("expected https:// or http:// and then the host, without a backslash or an @ before the path")]
    Authority,
    /// Short link of the service's own domain, which might redirect in a circle.
    #[error("expected a URL that is no short link of this service's own domain")]
    OwnDomain,
    /// The short URL of the link itself, which would redirect in a circle.
    #[error("expected a URL that is not the short URL of this link itself")]
    Itself,
}

impl LongUrl {
    /// Maximum length of a URL, in bytes. Browsers and proxies have little more than that in
    /// common.
    pub const MAX_LEN: usize = 8 * 1024;

    /// Validates a URL with the schemes that the operator allows.
    ///
    /// `own` holds the addresses of the default domain's short links. A URL there is refused if its
    /// path could be a short link, and accepted otherwise.
    pub fn parse(text: &str, own: &[OwnAddress], schemes: &Schemes) -> Result<Self, LongUrlError> {
        let text = text.trim_matches(is_around);
        if text.len() > Self::MAX_LEN {
            return Err(LongUrlError::TooLong);
        }
        // The URL parser drops tabs and line feeds silently, so they are refused before it runs.
        if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
            return Err(LongUrlError::Characters);
        }
        if !Reference::split(text).has_plausible_authority() {
            return Err(LongUrlError::Host);
        }
        let url = Url::parse(text).map_err(|_| LongUrlError::Malformed)?;
        if !schemes.allow(url.scheme()) {
            return Err(LongUrlError::Scheme);
        }
        if !is_web(url.scheme()) {
            // Other schemes are opened by other programs than browsers, so they cannot request a
            // short link.
            return if has_credentials(&url) {
                Err(LongUrlError::Credentials)
            } else {
                Ok(Self(text.into()))
            };
        }
        check_host(text, &url)?;
        let host = match url.host().ok_or(LongUrlError::Malformed)? {
            // With trailing dots it is the same host.
            Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_owned()),
            address => address.to_owned(),
        };
        let port = url.port_or_known_default().ok_or(LongUrlError::Malformed)?;
        if own.iter().any(|own| own.has(&host, port, url.path())) {
            return Err(LongUrlError::OwnDomain);
        }
        Ok(Self(text.into()))
    }

    /// Wraps a URL that was validated when it was stored.
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the host without trailing dots, with its port unless that is the scheme's default,
    /// and the path as the URL parser normalizes it. Both are empty for a URL whose authority is
    /// too long to be parsed, because it was stored before that limit existed.
    pub fn authority_and_path(&self) -> (String, String) {
        let is_short = Reference::split(&self.0).has_plausible_authority();
        let parsed = is_short.then(|| Url::parse(&self.0).ok()).flatten();
        let Some(url) = parsed else { return (String::new(), String::new()) };
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        (authority, url.path().to_owned())
    }

    /// Returns the key of the long URL index: the first eight bytes of the SHA-256, big-endian.
    /// Different URLs may share a digest.
    pub fn digest(&self) -> i64 {
        let digest = Sha256::digest(self.0.as_bytes());
        i64::from_be_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
    }
}

/// Checks that people and programs read the same host in an address of the web. `url` is the parsed
/// `text`.
pub(crate) fn check_host(text: &str, url: &Url) -> Result<(), LongUrlError> {
    if has_credentials(url) {
        return Err(LongUrlError::Credentials);
    }
    if !names_its_host(text) {
        return Err(LongUrlError::Authority);
    }
    let is_name = |host: Host<&str>| name_of(&host.to_owned()).is_some();
    let is_short = url.host_str().is_none_or(|host| host.len() <= HOST_MAX);
    if is_short && url.host().is_none_or(is_name) { Ok(()) } else { Err(LongUrlError::Host) }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Returns `true` if the host stands where people look for it. The URL parser repairs the same
/// mistakes as browsers, such as `https:evil` and `https://example.com\@evil`, and other parsers
/// read another host there.
fn names_its_host(text: &str) -> bool {
    let Some((_, behind)) = text.split_once(':') else { return false };
    let Some(behind) = behind.strip_prefix("//") else { return false };
    let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    end > 0 && !behind[..end].contains(['\\', '@'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::AUTHORITY_MAX;

    #[test]
    fn each_rule_refuses_with_its_own_reason() {
        let at = |host: &str, port, path: &str| OwnAddress {
            host: Host::parse(host).unwrap(),
            port,
            path: path.to_owned(),
        };
        let own = [at("s.test", 80, ""), at("s.test", 443, ""), at("below.test", 443, "/go")];
        let parse = |text: &str| LongUrl::parse(text, &own, &Schemes::default());
        let long = format!("https://example.com/{}", "a".repeat(LongUrl::MAX_LEN));
        let hosts =
            ["a".repeat(HOST_MAX + 1), "字".repeat(AUTHORITY_MAX / 3 + 1), ".a".repeat(AUTHORITY_MAX)];
        for host in hosts {
            for scheme in ["https://", "HTTP://"] {
                let text = format!("{scheme}{host}/path");
                assert_eq!(parse(&text), Err(LongUrlError::Host), "{text:?}");
            }
        }
        assert!(parse(&format!("https://{}.example/", "ä".repeat(50))).is_ok());
        let pasted = "\u{feff}\u{a0}\thttps://example.com/a\u{200b}\r\n ";
        assert_eq!(parse(pasted).unwrap().as_str(), "https://example.com/a");
        let stored = LongUrl::from_stored(format!("https://{}/x", "字".repeat(2_000)));
        assert_eq!(stored.authority_and_path(), (String::new(), String::new()));
        for (text, reason) in [
            (long.as_str(), LongUrlError::TooLong),
            ("https://example.com/a\nb", LongUrlError::Characters),
            ("https://exa\tmple.com/", LongUrlError::Characters),
            ("https://example.com/\0", LongUrlError::Characters),
            ("http://exa mple.com/", LongUrlError::Characters),
            ("", LongUrlError::Malformed),
            ("foo.com", LongUrlError::Malformed),
            ("https://", LongUrlError::Malformed),
            ("ftp://x.y/", LongUrlError::Scheme),
            ("javascript:alert(1)", LongUrlError::Scheme),
            ("JavaScript:alert(1)", LongUrlError::Scheme),
            ("shlink://some/path", LongUrlError::Scheme),
            ("data:text/html,x", LongUrlError::Scheme),
            ("http://user:pw@example.com/", LongUrlError::Credentials),
            ("http://user@example.com/", LongUrlError::Credentials),
            (r"https://example.com\@evil.example/", LongUrlError::Authority),
            (r"https:\\evil.example", LongUrlError::Authority),
            ("https:evil.example", LongUrlError::Authority),
            ("https:///evil.example", LongUrlError::Authority),
            ("https://@evil.example", LongUrlError::Authority),
            ("http://s.test/abc", LongUrlError::OwnDomain),
            ("https://S.TEST../a/b?x#y", LongUrlError::OwnDomain),
            ("https://s.test/%61bc", LongUrlError::OwnDomain),
            ("https://below.test/go/abc", LongUrlError::OwnDomain),
            ("https://s.test/abc/", LongUrlError::OwnDomain),
            ("https://s.test/abc%7D.", LongUrlError::OwnDomain),
            ("https://s.test/abc/{rest}", LongUrlError::OwnDomain),
            ("http://s.test/a//b", LongUrlError::OwnDomain),
        ] {
            assert_eq!(parse(text), Err(reason), "{text:?}");
        }
        let accepted = "https://example.com http://example.com:8080/ä?q=1#f http://[::1]/ \
                        http://s.test:81/x https://s.test/ https://s.test/rest/health http://s.test//a \
                        https://s.test/abc/qr-code \
                        https://below.test/abc https://below.test/gone https://below.test/go/ \
                        mailto:a@s.test tel:+491234";
        for text in accepted.split(' ') {
            assert_eq!(parse(text).unwrap().as_str(), text);
        }
        assert_eq!(parse("  https://example.com/ ").unwrap().as_str(), "https://example.com/");
    }
}
