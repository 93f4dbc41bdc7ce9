//! The URL of a receiver.
//!
//! 1. A URL is checked when a webhook is created, so that its owner sees the error. Names are
//!    resolved and checked in each attempt, because their addresses change.
//! 2. Two parsers read the URL: the one that finds the host to check, and the HTTP client's, which
//!    writes the request. A text that they read differently is refused.

use std::{
    fmt::{self, Display},
    net::{IpAddr, SocketAddr},
};

use hyper::Uri;
use url::{Host, Url};

use crate::policy::Policy;

/// The longest URL in bytes, as it was given and as it is sent.
const MAX_LEN: usize = 2_048;

/// A validated URL. Its debug form hides path and query, which often carry a token.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    text: Box<str>,
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
    /// Whether the scheme is http.
    pub(crate) is_plain_text: bool,
}

/// Why a URL or a bundle of certificates was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub(crate) String);

/// The reason of a refusal of http, which the operator has not allowed.
pub(crate) const PLAIN_TEXT: &str =
    "this server does not allow http: use https, or start it with --webhooks http";

fn malformed(reason: impl Display) -> Refused {
    Refused(format!("not a URL such as https://example.com/hook: {reason}"))
}

fn check_len(text: &str) -> Result<(), Refused> {
    match text.len() {
        ..=MAX_LEN => Ok(()),
        found => Err(Refused(format!("the URL has {found} bytes, and may have {MAX_LEN}"))),
    }
}

impl WebhookUrl {
    /// Parses a URL and normalizes it.
    pub fn parse(text: &str, policy: &Policy) -> Result<Self, Refused> {
        let refused = |reason: &str| Err(Refused(reason.to_owned()));
        check_len(text)?;
        let url = Url::parse(text).map_err(malformed)?;
        let is_plain_text = match url.scheme() {
            "https" => false,
            "http" if policy.allow_http => true,
            "http" => return refused(PLAIN_TEXT),
            _ => return refused("expected a URL that begins with https://"),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refused(
                "the URL has a user name or a password: leave it out, receivers check the signature",
            );
        }
        if url.fragment().is_some() {
            return refused("the URL has a fragment, which is never sent: leave out the part after #");
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(malformed("expected a host"));
        };
        if let Some(address) = literal(&host) {
            policy.check(&[SocketAddr::new(address, port)])?;
        }
        check_agreement(&url)?;
        Ok(Self { text: url.as_str().into(), host: host.to_owned(), port, is_plain_text })
    }

    /// Returns the URL in its normal form, in which it is sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_plain_text { "http" } else { "https" };
        write!(f, "{scheme}://{}:{}/…", self.host, self.port)
    }
}

/// Returns the address of a host that is one. The parser has already read the numeric forms that
/// resolvers take, such as 0x7f.1.
pub(crate) fn literal<S>(host: &Host<S>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address)),
    }
}

/// Checks that the HTTP client reads the URL in its normal form as the URL parser did.
fn check_agreement(url: &Url) -> Result<(), Refused> {
    let text = url.as_str();
    // Percent encoding and Punycode lengthen what was given.
    check_len(text)?;
    let uri = Uri::try_from(text).map_err(malformed)?;
    if uri.host() != url.host_str() || uri.port_u16() != url.port() {
        return Err(malformed("expected a host that is read in one way only"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<WebhookUrl, Refused> {
        WebhookUrl::parse(text, &Policy::default())
    }

    fn check_refused(text: &str, reason: &str) {
        let refused = parse(text).unwrap_err();
        assert!(refused.0.contains(reason), "{text}: {refused}");
    }

    fn with_length(length: usize) -> String {
        let start = "https://example.com/";
        format!("{start}{}", "x".repeat(length - start.len()))
    }

    #[test]
    fn urls_are_kept_in_their_normal_form() {
        for (text, kept, port) in [
            ("https://example.com", "https://example.com/", 443),
            ("HTTPS://Example.COM:443/a b?c=d", "https://example.com/a%20b?c=d", 443),
            ("https://example.com:8443/hook", "https://example.com:8443/hook", 8443),
            ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4", 443),
            ("https://8.8.8.8/", "https://8.8.8.8/", 443),
            ("https://[2606:4700::1111]:1/", "https://[2606:4700::1111]:1/", 1),
        ] {
            let url = parse(text).unwrap();
            assert_eq!((url.as_str(), url.port), (kept, port), "{text}");
        }
    }

    #[test]
    fn other_urls_are_refused_with_the_reason() {
        for (text, reason) in [
            ("http://example.com/", PLAIN_TEXT),
            ("ftp://example.com/", "begins with https://"),
            ("file:///etc/passwd", "begins with https://"),
            ("https://user@example.com/", "user name or a password"),
            ("https://:secret@example.com/", "user name or a password"),
            ("https://example.com/#part", "fragment"),
            ("https://example.com/#", "fragment"),
            ("", "not a URL"),
            ("example.com", "not a URL"),
            ("https://", "not a URL"),
            ("https://a b/", "not a URL"),
            ("https://[fe80::1%25eth0]/", "not a URL"),
            ("https://1.2.3.256/", "not a URL"),
        ] {
            check_refused(text, reason);
        }
    }

    #[test]
    fn literal_addresses_that_are_not_public_are_refused_in_every_form() {
        let hosts = "127.0.0.1 127.1 0x7f.1 2130706433 0177.0.0.1 127.0.0.1. １２７.0.0.1 0 \
                     169.254.169.254 [::1] [::ffff:169.254.169.254] [fd00:ec2::254] [64:ff9b::a00:1]";
        for host in hosts.split(' ') {
            check_refused(&format!("https://{host}/"), "is not a public address");
        }
    }

    #[test]
    fn a_policy_can_allow_plain_text_and_private_networks() {
        let policy = Policy { allowed_networks: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true };
        let url = WebhookUrl::parse("http://127.0.0.1/hook", &policy).unwrap();
        assert!(url.is_plain_text);
        assert_eq!(url.port, 80);
        let refused = WebhookUrl::parse("http://10.0.0.1/", &policy).unwrap_err();
        assert!(refused.0.contains("is not a public address"), "{refused}");
    }

    #[test]
    fn the_length_is_limited_as_given_and_as_sent() {
        assert!(parse(&with_length(MAX_LEN)).is_ok());
        check_refused(&with_length(MAX_LEN + 1), "the URL has 2049 bytes");
        let grows = format!("https://example.com/{}", "ä".repeat(500));
        check_refused(&grows, "the URL has 3020 bytes");
    }

    #[test]
    fn the_debug_form_hides_path_and_query() {
        let url = parse("https://example.com/token?key=1").unwrap();
        assert_eq!(format!("{url:?}"), "https://example.com:443/…");
    }

    proptest! {
        #[test]
        fn an_accepted_url_parses_to_itself(text in "(https?://)?[a-z0-9.:@\\[\\]%#?/ä\\\\|^{}\"' -]{0,40}|\\PC*") {
            let policy = Policy { allow_http: true, ..Policy::default() };
            if let Ok(url) = WebhookUrl::parse(&text, &policy) {
                prop_assert_eq!(WebhookUrl::parse(url.as_str(), &policy), Ok(url));
            }
        }
    }
}
