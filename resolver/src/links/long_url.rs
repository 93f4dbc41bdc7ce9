//! Where a link leads: checked once, at creation.

use std::fmt;

use url::{Host, Url};

/// The longest URL, in bytes: browsers and proxies agree on little more.
const MAX_LEN: usize = 8 * 1024;

/// A checked URL, kept as it was written apart from white space around it.
#[derive(Clone, PartialEq, Eq)]
pub struct LongUrl(Box<str>);

/// Why a URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LongUrlError {
    /// Longer than a redirect can carry.
    #[error("expected at most {MAX_LEN} bytes")]
    TooLong,
    /// It would break out of a header or a log line.
    #[error("expected no control characters and no white space inside")]
    Characters,
    /// The parser of the web's standard does not take it.
    #[error("expected an absolute URL such as https://example.com/page")]
    Malformed,
    /// Another scheme could run script or open an application.
    #[error("expected the scheme http or https")]
    Scheme,
    /// A password in a public redirect.
    #[error("expected no user name and no password")]
    Credentials,
    /// It would redirect in a circle.
    #[error("expected a URL that does not lead to this short domain itself")]
    OwnDomain,
}

impl LongUrl {
    /// The longest URL, in bytes.
    pub const MAX_LEN: usize = MAX_LEN;

    /// Checks a URL. `own` are the hosts with their ports that short links have here.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse(text: &str, own: &[(Host, u16)]) -> Result<Self, LongUrlError> {
        let text = text.trim_matches(' ');
        if text.len() > MAX_LEN {
            return Err(LongUrlError::TooLong);
        }
        // The standard's parser drops tabs and line feeds silently, so they are looked for before it runs.
        if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
            return Err(LongUrlError::Characters);
        }
        let url = Url::parse(text).map_err(|_| LongUrlError::Malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(LongUrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(LongUrlError::Credentials);
        }
        let host = match url.host().ok_or(LongUrlError::Malformed)? {
            // A dot at the end names the same host.
            Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(name).to_owned()),
            address => address.to_owned(),
        };
        let port = url.port_or_known_default().ok_or(LongUrlError::Malformed)?;
        if own.contains(&(host, port)) {
            return Err(LongUrlError::OwnDomain);
        }
        Ok(Self(text.into()))
    }

    /// Takes a URL that was checked when it was stored.
    #[must_use]
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Its host, without a dot at the end, and its port unless it is the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let Ok(url) = Url::parse(&self.0) else { return String::new() };
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Its host, as the standard's parser writes it.
    #[must_use]
    pub fn host(&self) -> String {
        Url::parse(&self.0).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The URL as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LongUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LongUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_refuses_with_its_own_reason() {
        let own = [(Host::parse("s.test").unwrap(), 80), (Host::parse("s.test").unwrap(), 443)];
        let long = format!("https://example.com/{}", "a".repeat(MAX_LEN));
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
            ("data:text/html,x", LongUrlError::Scheme),
            ("http://user:pw@example.com/", LongUrlError::Credentials),
            ("http://user@example.com/", LongUrlError::Credentials),
            ("http://s.test/abc", LongUrlError::OwnDomain),
            ("https://S.TEST./abc".trim_end_matches("./abc"), LongUrlError::OwnDomain),
        ] {
            assert_eq!(LongUrl::parse(text, &own), Err(reason), "{text:?}");
        }
        for text in
            ["https://example.com", "http://example.com:8080/ä?q=1#f", "http://[::1]/", "http://s.test:81/"]
        {
            assert_eq!(LongUrl::parse(text, &own).unwrap().as_str(), text);
        }
        assert_eq!(LongUrl::parse("  https://example.com/ ", &own).unwrap().as_str(), "https://example.com/");
    }
}
