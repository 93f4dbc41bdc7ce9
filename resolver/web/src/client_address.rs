//! The one reader of the headers in which proxies name their clients.
//!
//! 1. Only trusted proxies are believed. A list is read from its end, over the trusted proxies,
//!    because each proxy appends its own peer: anyone may have written what stands before the first
//!    address that is not a trusted proxy's.
//! 2. Proxies write `X-Forwarded-For`, `Forwarded` (RFC 7239) or both, and pass on as it came the
//!    one that they do not write. So if the two name different clients, neither is believed. If the
//!    operator has named the header, no other is read.
//! 3. An element that cannot be read ends the walk at the proxy that wrote it, and is counted.
//! 4. An address may have a port, brackets, quotes and a zone, whichever header it stands in.
//! 5. Nothing here allocates: the fast path reads every request of a proxy with it.

use std::net::IpAddr;

use hyper::{
    HeaderMap,
    header::{FORWARDED, HeaderName, HeaderValue},
};

use crate::client_limits::Clients;

mod node;
mod split;

use node::node;
use split::rsplit_unquoted;

/// The header of lists that is read unless another one is named.
static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client that one header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// The header is absent or empty.
    Nothing,
    /// Every address is a trusted proxy's; this is the farthest.
    Proxy(IpAddr),
    Client(IpAddr),
    /// The walk ended at an element that cannot be read, behind this proxy.
    Unread(IpAddr),
}

impl Clients {
    /// Returns whether a peer is a trusted proxy.
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.limits.trusted_proxies.iter().any(|proxies| proxies.contains(&peer.to_canonical()))
    }

    /// Returns the header whose lines are lists of addresses.
    pub fn list_header(&self) -> &HeaderName {
        self.limits.client_header.as_ref().unwrap_or(&FORWARDED_FOR)
    }

    /// Returns the client on a connection from this peer: the peer itself, unless it is a trusted
    /// proxy, which names its client in these headers.
    pub fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let lines = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes);
        self.behind(peer, lines(self.list_header()), lines(&FORWARDED))
    }

    /// Returns the client behind a trusted proxy. `listed` are the lines of [`Self::list_header`],
    /// `forwarded` those of `Forwarded`.
    pub fn behind<'a>(
        &self,
        proxy: IpAddr,
        listed: impl DoubleEndedIterator<Item = &'a [u8]>,
        forwarded: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> IpAddr {
        let in_list = || self.walk(proxy, listed.rev().flat_map(listed_nodes));
        let in_forwarded = || self.walk(proxy, forwarded.rev().flat_map(forwarded_nodes));
        let named = match &self.limits.client_header {
            Some(header) if *header == FORWARDED => in_forwarded(),
            Some(_) => in_list(),
            None => agreed(proxy, in_list(), in_forwarded()),
        };
        match named {
            Named::Nothing => proxy,
            Named::Proxy(address) | Named::Client(address) => address,
            Named::Unread(address) => {
                self.unread.increment(1);
                address
            }
        }
    }

    /// Walks over addresses, the nearest first, up to the first that is not a trusted proxy's.
    fn walk(&self, proxy: IpAddr, nodes: impl Iterator<Item = Option<IpAddr>>) -> Named {
        let mut named = Named::Nothing;
        for node in nodes {
            named = match (node, named) {
                (Some(address), _) if self.trusts(address) => Named::Proxy(address),
                (Some(address), _) => return Named::Client(address),
                (None, Named::Proxy(nearest)) => return Named::Unread(nearest),
                (None, _) => return Named::Unread(proxy),
            };
        }
        named
    }
}

/// Returns the client that two headers agree on. One that names proxies only contradicts nothing.
fn agreed(proxy: IpAddr, in_list: Named, in_forwarded: Named) -> Named {
    match (in_list, in_forwarded) {
        (named, Named::Nothing) | (Named::Nothing | Named::Proxy(_), named) => named,
        (named, Named::Proxy(_)) => named,
        (Named::Client(listed), Named::Client(forwarded)) if listed == forwarded => in_list,
        _ => Named::Unread(proxy),
    }
}

/// Returns the addresses of a line that is a list, from its end. Empty elements are none (RFC 9110,
/// section 5.6.1).
fn listed_nodes(line: &[u8]) -> impl Iterator<Item = Option<IpAddr>> {
    line.rsplit(|byte| *byte == b',').filter(|element| !element.trim_ascii().is_empty()).map(node)
}

/// Returns the addresses of a line of `Forwarded`, from its end.
fn forwarded_nodes(line: &[u8]) -> impl Iterator<Item = Option<IpAddr>> {
    rsplit_unquoted(line, b',').filter(|element| !element.trim_ascii().is_empty()).map(node_of_element)
}

/// Returns the address in the parameter `for` of an element. Two of them name none.
fn node_of_element(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    for pair in rsplit_unquoted(element, b';') {
        let Some(end) = pair.iter().position(|byte| *byte == b'=') else { continue };
        let is_for = pair[..end].trim_ascii().eq_ignore_ascii_case(b"for");
        if is_for && found.replace(&pair[end + 1..]).is_some() {
            return None;
        }
    }
    node(found?)
}

#[cfg(test)]
mod tests {
    use metrics::Counter;

    use super::*;
    use crate::client_limits::ClientLimits;

    const PROXY: &str = "10.0.0.1";

    fn reader(header: Option<&str>) -> Clients {
        let limits = ClientLimits {
            connections: None,
            unknown_codes: 0,
            trusted_proxies: ["10.0.0.0/8", "::1/128"].map(|proxy| proxy.parse().unwrap()).to_vec(),
            client_header: header.map(|name| name.parse().unwrap()),
            country_header: None,
        };
        Clients::new(limits, Counter::noop())
    }

    fn client(header: Option<&str>, listed: &[&[u8]], forwarded: &[&[u8]]) -> String {
        let lines = (listed.iter().copied(), forwarded.iter().copied());
        reader(header).behind(PROXY.parse().unwrap(), lines.0, lines.1).to_string()
    }

    #[test]
    fn a_list_is_read_from_its_end_over_the_trusted_proxies() {
        let cases: &[(&[&[u8]], &str)] = &[
            (&[], PROXY),
            (&[b""], PROXY),
            (&[b"192.0.2.7"], "192.0.2.7"),
            (&[b"198.51.100.1, 192.0.2.7"], "192.0.2.7"),
            (&[b"198.51.100.1, 192.0.2.7:4711, 10.0.0.2:80"], "192.0.2.7"),
            (&[b"198.51.100.1", b"192.0.2.7,10.0.0.2"], "192.0.2.7"),
            (&[b"192.0.2.7, ,\t,"], "192.0.2.7"),
            (&[b"192.0.2.7, nonsense, 10.0.0.2"], "10.0.0.2"),
            (&[b"192.0.2.7, unknown"], PROXY),
            (&[b"\xff, 192.0.2.7"], "192.0.2.7"),
            (&[b"[2001:db8::1]:443, [::1]"], "2001:db8::1"),
            (&[b"10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ];
        for (lines, expected) in cases {
            assert_eq!(client(None, lines, &[]), *expected, "{lines:?}");
            assert_eq!(client(Some("x-real-ip"), lines, &[b"for=203.0.113.1"]), *expected, "{lines:?}");
        }
    }

    #[test]
    fn forwarded_is_read_from_its_end_over_the_trusted_proxies() {
        let cases: &[(&[&[u8]], &str)] = &[
            (&[b"for=192.0.2.7"], "192.0.2.7"),
            (&[b"For=\"192.0.2.7:4711\";proto=https;by=10.0.0.1"], "192.0.2.7"),
            (&[b"proto=https; FOR = \"[2001:db8::1]:4711\""], "2001:db8::1"),
            (&[b"for=\"\\[2001:db8::1\\]\""], "2001:db8::1"),
            (&[b"for=198.51.100.1, for=192.0.2.7;host=\"a,b;for=6.6.6.6\", for=10.0.0.2"], "192.0.2.7"),
            (&[b"for=198.51.100.1", b"for=192.0.2.7", b"for=10.0.0.2"], "192.0.2.7"),
            (&[b"for=192.0.2.7, for=unknown, for=10.0.0.2"], "10.0.0.2"),
            (&[b"for=_hidden"], PROXY),
            (&[b"for=192.0.2.7, by=10.0.0.2;proto=https"], PROXY),
            (&[b"for=192.0.2.7;for=192.0.2.8"], PROXY),
            (&[b"192.0.2.7"], PROXY),
            // A visitor's quotes do not swallow what the proxy appends.
            (&[b"for=\"6.6.6.6, for=192.0.2.7"], "192.0.2.7"),
            (&[b"for=6.6.6.6;by=\", for=192.0.2.7;host=\"e.example\""], "192.0.2.7"),
            (&[b"for=6.6.6.6;by=\"\\, for=192.0.2.7;host=\"\\\\\""], "192.0.2.7"),
        ];
        for (lines, expected) in cases {
            assert_eq!(client(None, &[], lines), *expected, "{lines:?}");
            assert_eq!(client(Some("forwarded"), &[b"203.0.113.1"], lines), *expected, "{lines:?}");
        }
    }

    #[test]
    fn a_visitor_chooses_nothing_with_the_header_that_the_proxy_does_not_write() {
        let named = |listed: &[u8], forwarded: &[u8]| client(None, &[listed], &[forwarded]);
        assert_eq!(named(b"192.0.2.7:1", b"for=\"192.0.2.7:2\""), "192.0.2.7");
        for (listed, forwarded) in [
            ("192.0.2.7", "for=6.6.6.6"),
            ("unknown", "for=6.6.6.6"),
            ("6.6.6.6", "for=unknown"),
            ("6.6.6.6", "nonsense"),
        ] {
            assert_eq!(named(listed.as_bytes(), forwarded.as_bytes()), PROXY, "{listed} {forwarded}");
        }
        assert_eq!(named(b"10.0.0.9", b"for=192.0.2.7"), "192.0.2.7", "a proxy's address is no client");
        assert_eq!(named(b"192.0.2.7", b"for=10.0.0.9"), "192.0.2.7");
        assert_eq!(named(b"10.0.0.9", b"for=10.0.0.8"), "10.0.0.8");
    }

    #[test]
    fn only_what_trusted_proxies_say_is_believed() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let clients = reader(None);
        let client_of = |peer, lines: &[(&'static str, &'static str)]| {
            let lines = lines
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            clients.client_of(ip(peer), &HeaderMap::from_iter(lines)).to_string()
        };
        let listed = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "192.0.2.7:4711")];
        let forwarded = [("forwarded", "for=198.51.100.1"), ("forwarded", "for=192.0.2.7")];
        for lines in [&listed, &forwarded] {
            assert_eq!(client_of("10.0.0.1", lines), "192.0.2.7");
            assert_eq!(client_of("::ffff:10.1.1.1", lines), "192.0.2.7");
            assert_eq!(client_of("11.0.0.1", lines), "11.0.0.1");
        }
    }
}
