//! The hosts that pages are served on, and warnings of hosts that no domain has.
//!
//! 1. Pages belong to the host of the public URL, however it is written and whether the default
//!    domain is enabled or not: the domains are managed with them, the default one included.
//! 2. No other host name gets a page. Anyone can let a name of their own lead to this server's
//!    address, and a web page of that name would share its origin with the pages (DNS rebinding).
//! 3. With an IP address or `localhost` as the public URL, literal loopback addresses and
//!    `localhost` get the pages too, with any port: no DNS answer can make another name of them,
//!    and ports are often forwarded.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Mutex,
};

use links::requested_authority;
use url::{Host, Url};

use super::{DomainCache, PublicUrl};

/// Maximum number of unknown hosts that are warned of, because their visitors get the default
/// domain's links, which is easily overlooked behind a proxy. Scanners invent hosts without end.
const WARNED_MAX: usize = 8;

/// The host of a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageHost {
    /// The public URL's: pages are served.
    Own,
    /// That of another domain.
    OfDomain,
    /// A host that no domain has.
    Unknown,
}

impl DomainCache {
    /// Returns whether pages are served on a request's host.
    pub fn page_host(&self, host: Option<&str>) -> PageHost {
        let Some(host) = host else { return PageHost::Unknown };
        if self.is_default_name(host) || self.is_local && is_loopback(host) {
            return PageHost::Own;
        }
        match self.of_host(&self.entries(), host) {
            Some(_) => PageHost::OfDomain,
            None => PageHost::Unknown,
        }
    }
}

impl PublicUrl {
    /// Returns the host and port as browsers send them: in lower case, with A-labels and with IP
    /// addresses in their shortest form. Returns also whether the host is an IP address or
    /// `localhost`, which no DNS answer leads to.
    pub(super) fn requested(&self) -> (String, bool) {
        let url = Url::parse(&format!("{}://{}", self.protocol.as_str(), self.authority)).ok();
        let requested = url.as_ref().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        let is_local = match url.as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name) == "localhost",
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
            None => false,
        };
        (requested_authority(requested.as_deref().unwrap_or(&self.authority)).into_owned(), is_local)
    }
}

fn is_loopback(host: &str) -> bool {
    let host = requested_authority(host);
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
        _ => &*host,
    };
    let address = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().map(IpAddr::V6).ok(),
        None => name.parse::<Ipv4Addr>().map(IpAddr::V4).ok(),
    };
    name == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

#[derive(Debug, Default)]
pub(super) struct UnknownHosts(Mutex<Vec<Box<str>>>);

impl UnknownHosts {
    /// Returns whether to warn of a host: once for each of the first [`WARNED_MAX`].
    pub(super) fn is_new(&self, host: &str) -> bool {
        let mut warned = self.0.lock().expect("no code panics while it holds this lock");
        if warned.len() >= WARNED_MAX || warned.iter().any(|known| **known == *host) {
            return false;
        }
        warned.push(host.into());
        true
    }
}

#[cfg(test)]
mod tests {
    use links::Protocol;

    use super::*;

    fn public(url: &str) -> PublicUrl {
        let (scheme, authority) = url.split_once("://").unwrap();
        let (protocol, authority) = (Protocol::parse(scheme).unwrap(), authority.to_owned());
        PublicUrl { protocol, authority, path: String::new() }
    }

    #[test]
    fn the_public_host_is_compared_as_browsers_send_it() {
        for (url, requested, is_local) in [
            ("https://s.test", "s.test", false),
            ("https://s.test:443", "s.test", false),
            ("https://s.test.", "s.test", false),
            ("https://s.test:8443", "s.test:8443", false),
            ("https://m\u{fc}nchen.test", "xn--mnchen-3ya.test", false),
            ("http://localhost.test", "localhost.test", false),
            ("http://localhost:8080", "localhost:8080", true),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("http://192.0.2.7", "192.0.2.7", true),
            ("http://[0:0:0:0:0:0:0:1]:8080", "[::1]:8080", true),
        ] {
            let public = public(url);
            assert_eq!(public.requested(), (requested.to_owned(), is_local), "{url}");
        }
    }

    #[test]
    fn only_literal_addresses_and_localhost_are_loopback() {
        for host in [
            "localhost",
            "LocalHost.:8080",
            "127.0.0.1",
            "127.8.9.1:80",
            "[::1]",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            ":8080",
            "rebind.evil:8080",
            "127.0.0.1.evil",
            "localhost.evil",
            "evil.localhost:8080",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
            "0.0.0.0:8080",
            "192.0.2.1",
            "::1",
            "[::2]",
            "[::1",
            "user@127.0.0.1",
            "127.0.0.1:8080:9",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_host_is_warned_of_once_and_few_are() {
        let hosts = UnknownHosts::default();
        assert!(hosts.is_new("a.test") && !hosts.is_new("a.test"));
        let warned = (0..100).filter(|n| hosts.is_new(&format!("{n}.test"))).count();
        assert_eq!(warned, WARNED_MAX - 1);
    }
}
