//! Which addresses are one client.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the address that identifies a client: an IPv4 address, or an IPv6 network of 64 bits.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_client() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        assert_eq!(network(ip("2001:db8::1")), network(ip("2001:db8::2:1")));
        assert_ne!(network(ip("2001:db8::1")), network(ip("2001:db8:0:1::1")));
        assert_eq!(network(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
    }
}
