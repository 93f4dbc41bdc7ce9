//! Which IP addresses are on the public Internet.
//!
//! 1. IPv4: all addresses but those of the IANA registry of special-purpose addresses, and the
//!    address at which Azure serves its virtual machines.
//! 2. IPv6: only global unicast, 2000::/3, without its special ranges. Ranges that are assigned
//!    later are refused until they are listed here.
//! 3. An IPv6 address that carries IPv4 addresses is judged by each of them. The translator or the
//!    tunnel at its end would connect to them.
//!
//! `IpAddr::is_global` was rejected: it is unstable, and does not look into embedded addresses. A
//! translator with a prefix of the operator's own cannot be recognized, so that network needs a
//! firewall.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Special ranges of IPv4, in numerical order.
const V4: [(Ipv4Net, &str); 16] = [
    (v4([0, 0, 0, 0], 8), "this network"),
    (v4([10, 0, 0, 0], 8), "private"),
    (v4([100, 64, 0, 0], 10), "shared by the customers of a provider"),
    (v4([127, 0, 0, 0], 8), "loopback"),
    (v4([168, 63, 129, 16], 32), "metadata of a cloud"),
    (v4([169, 254, 0, 0], 16), "link-local, metadata of clouds"),
    (v4([172, 16, 0, 0], 12), "private"),
    (v4([192, 0, 0, 0], 24), "protocol assignments"),
    (v4([192, 0, 2, 0], 24), "documentation"),
    (v4([192, 88, 99, 0], 24), "relays of 6to4"),
    (v4([192, 168, 0, 0], 16), "private"),
    (v4([198, 18, 0, 0], 15), "benchmarks"),
    (v4([198, 51, 100, 0], 24), "documentation"),
    (v4([203, 0, 113, 0], 24), "documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([240, 0, 0, 0], 4), "reserved"),
];

/// Special ranges of IPv6, in numerical order, without those that carry IPv4 addresses.
const V6: [(Ipv6Net, &str); 12] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    // Each network chooses where in these addresses the IPv4 address lies (RFC 8215, RFC 6052).
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "NAT64 of a local network"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discarded"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "protocol assignments"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "segment routing"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique local"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
];

/// Global unicast, the only part of IPv6 from which addresses are assigned.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Returns the purpose of the special range that an address belongs to. `None` if it is public.
pub(crate) fn special_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    V4.iter().find(|(range, _)| range.contains(&address)).map(|(_, purpose)| *purpose)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    // The two that follow :: are addresses of their own, although ::/96 carries IPv4 addresses.
    if !matches!(address, Ipv6Addr::UNSPECIFIED | Ipv6Addr::LOCALHOST)
        && let Some(carried) = carried(address)
    {
        return carried.into_iter().find_map(special_v4);
    }
    let listed = V6.iter().find(|(range, _)| range.contains(&address)).map(|(_, purpose)| *purpose);
    listed.or_else(|| (!GLOBAL_UNICAST.contains(&address)).then_some("not global unicast"))
}

/// Returns the IPv4 addresses inside an IPv6 address: one, or for Teredo the server's and the
/// client's. `None` if its form carries none.
fn carried(address: Ipv6Addr) -> Option<[Ipv4Addr; 2]> {
    let once = |address| Some([address, address]);
    match address.segments() {
        // IPv4-compatible, IPv4-mapped (RFC 4291), and NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            once(join(high, low))
        }
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => once(join(high, low)),
        // Teredo writes the client's address inverted (RFC 4380).
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            Some([join(server_high, server_low), join(!high, !low)])
        }
        _ => None,
    }
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_public(address: IpAddr) -> bool {
        special_range(address).is_none()
    }

    fn judge(addresses: &str, expected: bool) {
        for text in addresses.split_whitespace() {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(is_public(address), expected, "{text}: {:?}", special_range(address));
        }
    }

    #[test]
    fn the_first_and_last_address_of_each_special_range_is_refused() {
        judge(
            "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1
             127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0
             172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.0 192.88.99.255
             192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255
             203.0.113.0 203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.254
             255.255.255.255",
            false,
        );
        judge(
            ":: ::1 64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff 64:ff9b:1::8.8.8.8 100::
             100::ffff:ffff:ffff:ffff 2001:1:: 2001:2::1 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
             2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 3fff::
             3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 5f00:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff fc00::
             fd00:ec2::254 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fe80::
             febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
             ff00:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            false,
        );
    }

    #[test]
    fn the_neighbours_of_special_ranges_are_public() {
        judge(
            "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
             168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0
             191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255
             192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0
             223.255.255.255",
            true,
        );
        judge(
            "2000:: 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200::
             2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2003::
             3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000:: 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            true,
        );
    }

    #[test]
    fn ipv6_outside_of_global_unicast_is_refused_even_if_it_is_not_listed() {
        judge(
            "0:0:0:0:ffff:0:8.8.8.8 64:ff9a::8.8.8.8 64:ff9b::1:8.8.8.8 1fff:: 4000:: 5eff::1 5f01::
             fbff::1 fe00::1",
            false,
        );
    }

    #[test]
    fn an_embedded_address_decides() {
        // Teredo: a private server, then a private client (192.168.0.1 inverted).
        judge(
            "::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1 ::127.0.0.1 ::2 64:ff9b::10.0.0.1
             64:ff9b::127.0.0.1 2002:7f00:1:: 2002:a00:1::8.8.8.8 2001:0:a00:1::f7f7:f7f7
             2001:0:808:808::3f57:fffe",
            false,
        );
        judge(
            "::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::8.8.8.8 2002:808:808:: 2002:808:808::10.0.0.1
             2001:0:808:808::f7f7:f7f7",
            true,
        );
    }

    proptest! {
        #[test]
        fn each_way_to_carry_an_ipv4_address_is_judged_like_that_address(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let expected = is_public(IpAddr::V4(address));
            for carrier in [
                address.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
                Ipv6Addr::new(0x2001, 0, 0x808, 0x808, 0, 0, !high, !low),
                Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !0x808, !0x808),
            ] {
                prop_assert_eq!(is_public(IpAddr::V6(carrier)), expected, "{}", carrier);
            }
        }
    }
}
