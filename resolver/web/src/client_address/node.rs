//! The address of a node, as proxies write it.

use std::{net::IpAddr, str::from_utf8};

/// Maximum number of bytes of a node that has escaped characters.
const ESCAPED_MAX: usize = 128;

/// Returns the address of a node (RFC 7239, section 6): an IP address, in brackets or not, with or
/// without a port, and within quotes or not. An IPv4 address in IPv6 form is the IPv4 address.
/// Returns `None` for `unknown`, obfuscated names and all other text.
pub(super) fn node(text: &[u8]) -> Option<IpAddr> {
    let text = text.trim_ascii();
    let Some(quoted) = text.strip_prefix(b"\"") else { return plain_node(text) };
    let quoted = quoted.strip_suffix(b"\"")?;
    if !quoted.contains(&b'\\') {
        return plain_node(quoted.trim_ascii());
    }
    let mut space = [0; ESCAPED_MAX];
    plain_node(unescaped(quoted, &mut space)?)
}

/// Copies text without its backslashes. Returns `None` if it is too long for an address.
fn unescaped<'a>(text: &[u8], space: &'a mut [u8; ESCAPED_MAX]) -> Option<&'a [u8]> {
    let mut bytes = text.iter();
    let mut len = 0;
    while let Some(byte) = bytes.next() {
        *space.get_mut(len)? = if *byte == b'\\' { *bytes.next()? } else { *byte };
        len += 1;
    }
    space.get(..len)
}

fn plain_node(text: &[u8]) -> Option<IpAddr> {
    let text = from_utf8(text).ok()?;
    if let Some(rest) = text.strip_prefix('[') {
        let (within, port) = rest.split_once(']')?;
        let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return address(within).filter(|_| has_port);
    }
    // A port after an IPv6 address without brackets is one only if the whole is no address.
    address(text).or_else(|| {
        let (before, port) = text.rsplit_once(':')?;
        address(before).filter(|_| is_port(port))
    })
}

/// Returns an address without the zone that IPv6 addresses of one link may have (RFC 4007).
fn address(text: &str) -> Option<IpAddr> {
    let address = match text.split_once('%') {
        Some((address, _zone)) => IpAddr::V6(address.parse().ok()?),
        None => text.parse().ok()?,
    };
    Some(address.to_canonical())
}

fn is_port(text: &str) -> bool {
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && is_name(name),
        None => text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_spelling() {
        for (address, texts) in [
            (
                "203.0.113.9",
                "203.0.113.9| 203.0.113.9\t|203.0.113.9:51234|203.0.113.9:_port-1.x|203.0.113.9:|\"203.0.113.9\"|\
                 \"203.0.113.9:51234\"|[203.0.113.9]:51234|::ffff:203.0.113.9|::ffff:cb00:7109|\
                 [::ffff:203.0.113.9]:51234|::ffff:203.0.113.9:51234",
            ),
            (
                "2001:db8::1",
                "2001:db8::1|2001:DB8:0:0:0:0:0:1|[2001:db8::1]|[2001:db8::1]:443|\"[2001:db8::1]:443\"|\
                 2001:db8:0:0:0:0:0:1:443|\"\\[2001:db8::1\\]:\\4\\4\\3\"",
            ),
            ("fe80::1", "fe80::1%eth0|[fe80::1%25eth0]:443"),
        ] {
            for text in texts.split('|') {
                assert_eq!(node(text.as_bytes()), Some(address.parse().unwrap()), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_address_is_not_read() {
        let texts = "|\"|\"\"|unknown|_hidden|nonsense|203.0.113|203.0.113.009|203.0.113.9:x|203.0.113.9:123456|\
                     203.0.113.9:_|203.0.113.9 x|203.0.113.9%eth0|203.0.113.9/32|[2001:db8::1|[2001:db8::1]443|\
                     [2001:db8::1]:x|2001:db8::1]|\"203.0.113.9|203.0.113.9\"|\"203.0.113.9\\\"|\
                     http://203.0.113.9|for=203.0.113.9|::ffff:203.0.113.9:x";
        for text in texts.split('|') {
            assert_eq!(node(text.as_bytes()), None, "{text}");
        }
        assert_eq!(node(b"\xff"), None);
        assert_eq!(node(format!("\"{}\"", "\\1".repeat(ESCAPED_MAX + 1)).as_bytes()), None);
    }
}
