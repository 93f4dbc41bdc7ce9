//! Addresses of visitors, as far as they are kept.

use std::net::IpAddr;

use ipnet::IpNet;

/// The lengths of the prefixes that are kept of cut addresses.
pub(crate) const V4_CUT: u8 = 24;
const V6_CUT: u8 = 48;

/// How much of a visitor's address is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressMode {
    /// The network: /24 of an IPv4 address and /48 of an IPv6 address.
    #[default]
    Cut,
    /// The whole address.
    Full,
    /// Nothing.
    None,
}

impl AddressMode {
    /// Returns what is kept of an address. An IPv4 address in IPv6 form counts as IPv4.
    pub fn keep(self, client: IpAddr) -> Option<IpAddr> {
        let client = client.to_canonical();
        match self {
            Self::None => None,
            Self::Full => Some(client),
            Self::Cut => Some(network_of(client).addr()),
        }
    }
}

pub(crate) fn network_of(address: IpAddr) -> IpNet {
    let bits = if address.is_ipv4() { V4_CUT } else { V6_CUT };
    IpNet::new(address, bits).expect("no address is that short").trunc()
}

codes::stored_number! {
    /// An address in a stored row: 0 for none. IPv4 addresses and the first 48 bits of IPv6
    /// addresses are stored as they are. An IPv6 address with more bits is a text, under its hash.
    pub struct StoredAddress(i64);
}

const V4: i64 = 1 << 48;
/// Marks the first 48 bits of an IPv6 address.
const V6_NETWORK: i64 = 1 << 49;
/// Marks the hash of a whole IPv6 address.
const V6_TEXT: i64 = 1 << 62;

impl StoredAddress {
    /// No address.
    pub const NONE: Self = Self(0);

    /// The lowest number of an address that is a text. All numbers from here on are of such.
    pub const TEXTS: Self = Self(V6_TEXT);

    /// Encodes an address. `hash` is called for an IPv6 address with more than 48 bits, whose 16
    /// bytes have to be stored as a text under [`get`](Self::get).
    pub fn new(address: Option<IpAddr>, hash: impl FnOnce(&[u8]) -> i64) -> Self {
        match address {
            None => Self::NONE,
            Some(IpAddr::V4(address)) => Self(V4 | i64::from(u32::from(address))),
            Some(IpAddr::V6(address)) => {
                let bits = u128::from(address);
                match i64::try_from(bits >> 80) {
                    Ok(network) if bits << 48 == 0 => Self(V6_NETWORK | network),
                    _ => Self(V6_TEXT | (hash(&address.octets()) & (V6_TEXT - 1))),
                }
            }
        }
    }

    /// Returns whether the address is a text that has this number as its hash.
    pub fn is_text(self) -> bool {
        self.0 & V6_TEXT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut_and_have_a_number_or_a_text() {
        for (mode, given, kept, number) in [
            (AddressMode::Cut, "192.0.2.77", Some("192.0.2.0"), V4 | 0xc000_0200),
            (AddressMode::Cut, "::ffff:192.0.2.77", Some("192.0.2.0"), V4 | 0xc000_0200),
            (AddressMode::Cut, "2001:db8:1:2::3", Some("2001:db8:1::"), V6_NETWORK | 0x2001_0db8_0001),
            (AddressMode::Full, "2001:db8:1:2::3", Some("2001:db8:1:2::3"), V6_TEXT | (V6_TEXT - 7)),
            (AddressMode::Full, "255.255.255.255", Some("255.255.255.255"), V4 | 0xffff_ffff),
            (AddressMode::Full, "ffff:ffff:ffff::", Some("ffff:ffff:ffff::"), V6_NETWORK | 0xffff_ffff_ffff),
            (AddressMode::None, "192.0.2.77", None, 0),
        ] {
            let address = mode.keep(given.parse().unwrap());
            assert_eq!(address, kept.map(|kept| kept.parse().unwrap()), "{given}");
            let mut text = None;
            let stored = StoredAddress::new(address, |octets| {
                text = Some(octets.to_vec());
                -7
            });
            assert_eq!((stored.get(), stored.is_text()), (number, text.is_some()), "{given}");
            let octets = |text: Vec<u8>| IpAddr::from(<[u8; 16]>::try_from(text).unwrap());
            assert!(text.is_none_or(|text| Some(octets(text)) == address), "{given}");
        }
    }
}
