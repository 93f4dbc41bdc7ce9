//! The hosts that a target leads browsers to.
//!
//! 1. The text is read as browsers do, after the WHATWG URL Standard: `//host`, `/\host`, a tab in
//!    the scheme, other spellings of an address, full-width letters.
//! 2. A relative target stays on the host that serves the redirect. Whether it was served with http
//!    or https is the proxy's secret, so both are tried.
//! 3. Addresses that name a host are told from those that name none (`tel:`), and from those that
//!    may name one where nobody knows to look: `view-source:`, `blob:`, a text that does not parse.

use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::{Host, Position, Url};

use crate::{
    reference::{Reference, without_ignored},
    scheme::acts_in_the_browser,
};

/// Maximum length of a host, in bytes: the limit of DNS names.
pub(crate) const HOST_MAX: usize = 253;
/// Schemes whose text names a person, who may write any text beside it.
const PERSONAL: [&str; 2] = ["mailto", "tel"];
/// Android's scheme for apps: a parameter names the page to open in place of an app.
const INTENT: &str = "intent";

/// The host that serves a redirect, against which browsers resolve the target.
#[derive(Clone, Debug)]
pub struct Base([Url; 2]);

impl Base {
    /// Reads the name of a domain, with its port if it has one. Returns `None` if it is no host.
    pub fn new(authority: &str) -> Option<Self> {
        let served = |scheme| Url::parse(&format!("{scheme}://{authority}/")).ok();
        Some(Self([served("http")?, served("https")?]))
    }
}

/// Returns the hosts that browsers may go to, perhaps none; `None` if that cannot be judged.
pub(crate) fn hosts(target: &str, base: Option<&Base>) -> Option<Vec<String>> {
    let target = without_ignored(target);
    let reference = Reference::split(&target);
    if !reference.has_plausible_authority() {
        return None;
    }
    if reference.is_absolute() {
        return Some(host_of(&Url::parse(&target).ok()?)?.into_iter().collect());
    }
    let mut hosts = Vec::new();
    for base in &base?.0 {
        hosts.extend(host_of(&base.join(&target).ok()?)?);
    }
    Some(hosts)
}

/// Returns the host of a URL, `Some(None)` if it names none, or `None` if that cannot be judged.
fn host_of(url: &Url) -> Option<Option<String>> {
    if acts_in_the_browser(url.scheme()) || url.scheme() == INTENT {
        return None;
    }
    match url.host() {
        Some(Host::Domain(name)) if !name.is_empty() => {
            // The parser decodes the hosts of web addresses only.
            let name = percent_decode_str(name).decode_utf8().ok()?;
            Some(Some(name_of(&Host::parse(&name).ok()?)?))
        }
        Some(address @ (Host::Ipv4(_) | Host::Ipv6(_))) => Some(Some(name_of(&address.to_owned())?)),
        Some(Host::Domain(_)) | None => {
            let is_clear = PERSONAL.contains(&url.scheme()) || !mentions_address(url);
            is_clear.then_some(None)
        }
    }
}

/// Returns the name by which rules know a host: without trailing dots, and for an IPv4 address that
/// is written as an IPv6 address, that address. Returns `None` if no host can have the name.
pub(crate) fn name_of(host: &Host) -> Option<String> {
    let name = match host {
        Host::Domain(name) => name.trim_end_matches('.').to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => match IpAddr::from(*address).to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        },
    };
    (1..=HOST_MAX).contains(&name.len()).then_some(name)
}

/// Returns `true` if a URL without a host may have another URL inside.
fn mentions_address(url: &Url) -> bool {
    let rest = percent_decode_str(&url[Position::BeforePath..]).decode_utf8_lossy();
    let inner = Reference::split(&rest);
    ["//", "\\\\", "/\\", "\\/"].iter().any(|slashes| rest.contains(slashes))
        || inner.scheme.is_some() && inner.is_special()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts_of(target: &str) -> Option<Vec<String>> {
        hosts(target, Base::new("own.example:8080").as_ref())
    }

    #[test]
    fn a_host_is_found_in_every_spelling_that_browsers_take() {
        let spellings = "https://denied.example|HTTPS://DENIED.example:8443/x|\
                         https:/\\user:pw@denied.example|//denied.example/|/\\denied.example|\
                         \\\\denied.example|/\t/denied.example| \u{1}\nht\ttps://denied\n.example|\
                         https://denied.example...|https://denied%2Eexample|https://%64enied.example|\
                         https://ｄｅｎｉｅｄ。example|https://de\u{ad}nied.example|\
                         https://ok.example\\@denied.example/../|https:////denied.example|\
                         wss://denied.example|app://denied.example/x|app://%64ENIED.example/x";
        for target in spellings.split('|') {
            let expected = if target.contains("ok.") { "ok.example" } else { "denied.example" };
            assert!(
                hosts_of(target).is_some_and(|hosts| hosts.iter().all(|host| host == expected)),
                "{target}"
            );
            assert!(hosts_of(target).is_some_and(|hosts| !hosts.is_empty()), "{target}");
        }
        for target in ["http://0x7f.1", "http://2130706433", "http://017700000001/", "http://[::ffff:7f00:1]"]
        {
            assert_eq!(hosts_of(target), Some(vec!["127.0.0.1".to_owned()]), "{target}");
        }
        for target in ["/lost", "lost", "?x", "", ".//denied.example", "/%2fdenied.example", "a:b/../c"] {
            let expected = if target.contains(':') { Vec::new() } else { vec!["own.example".to_owned(); 2] };
            assert_eq!(hosts_of(target), Some(expected), "{target}");
        }
        let either = vec!["denied.example".to_owned(), "own.example".to_owned()];
        assert_eq!(hosts_of("https:denied.example"), Some(either), "by the scheme of the page");
    }

    #[test]
    fn what_names_no_host_is_told_from_what_may_name_one() {
        for target in ["tel:+1", "mailto:a@b.example?body=https://c.example", "spotify:track:1", "app:///x"] {
            assert_eq!(hosts_of(target), Some(Vec::new()), "{target}");
        }
        let long = format!("https://{}/", "a.".repeat(130));
        let unclear = "view-source:https://denied.example|blob:https://denied.example/1|\
                       javascript:location='//denied.example'|data:text/html,x|file:///etc|\
                       intent:#Intent;S.browser_fallback_url=x;end|feed:https://denied.example|\
                       feed:https:denied.example|feed:https%3A%2F%2Fdenied.example|\
                       app:///https:%5C%5Cdenied.example|app://a b/|https://|https://[::1|\
                       https://a..b:99999/|https://.../|https://xn--a/|http://1.2.3.4.5/";
        for target in unclear.split('|').chain([&*long]) {
            assert_eq!(hosts_of(target), None, "{target}");
        }
        assert_eq!(hosts("/lost", None), None);
        assert!(Base::new("(no host)").is_none());
    }
}
