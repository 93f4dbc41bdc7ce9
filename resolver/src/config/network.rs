//! Networks in flags: by CIDR, or a single address.

use std::net::IpAddr;

use ipnet::IpNet;

/// Parses a network such as `10.0.0.0/8`. An address without a prefix is the network of it alone.
pub(crate) fn parse_network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address.or_else(|_| text.parse()).map_err(|_| {
        format!("{text:?} is neither an IP address nor a network such as 10.0.0.0/8 or 2001:db8::/32")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_network_of_it_alone() {
        for (text, network) in [
            ("127.0.0.1", "127.0.0.1/32"),
            (" ::1 ", "::1/128"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("2001:db8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(parse_network(text), Ok(network.parse().unwrap()), "{text}");
        }
        for text in ["", "10.0.0", "10.0.0.0/33", "localhost", "127.0.0.1:80", "[::1]"] {
            assert!(parse_network(text).is_err(), "{text}");
        }
    }
}
