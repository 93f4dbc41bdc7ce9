//! Networks, whose visits a person may want to be erased.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use links::unmapped_network;

use crate::{
    StoredAddress,
    address::{V4_CUT, network_of},
};

/// An address or a network of addresses. IPv4 addresses in IPv6 form count as IPv4.
///
/// A stored address that may have been cut belongs to the networks that its own network overlaps:
/// whose address it was is not known any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressNetwork(IpNet);

impl AddressNetwork {
    /// The shortest prefix of an IPv4 network: a shorter one is a mistake.
    pub const V4_PREFIX_MIN: u8 = 8;
    /// The shortest prefix of an IPv6 network.
    pub const V6_PREFIX_MIN: u8 = 16;

    /// Parses an address such as `192.0.2.7`, or a network such as `2001:db8::/48`. Bits behind the
    /// prefix are ignored. Returns `None` if it is neither, or too wide.
    pub fn parse(text: &str) -> Option<Self> {
        let given = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
        let network = unmapped_network(given);
        let prefix_min = match network {
            IpNet::V4(_) => Self::V4_PREFIX_MIN,
            // A part of all IPv4 addresses and others.
            IpNet::V6(six) if six.addr().to_ipv4_mapped().is_some() => return None,
            IpNet::V6(_) => Self::V6_PREFIX_MIN,
        };
        (network.prefix_len() >= prefix_min).then(|| Self(network.trunc()))
    }

    /// Returns the network that is kept of a cut address, if this one is narrower.
    pub fn cut(self) -> Self {
        let kept = network_of(self.0.addr());
        if self.0.prefix_len() > kept.prefix_len() { Self(kept) } else { self }
    }

    /// Returns whether visits with this stored address belong to the network.
    pub fn contains(self, kept: IpAddr) -> bool {
        self.0.contains(&kept) || kept == self.cut().0.addr()
    }

    /// Returns the numbers of the stored addresses that belong to the network, as inclusive ranges.
    /// `hash` is that of texts. A whole IPv6 address is a text, so those of a network are missing
    /// ([`texts`](Self::texts)), unless it has a single one.
    pub fn numbers(self, hash: impl Fn(&[u8]) -> i64) -> Vec<(i64, i64)> {
        let number = |address: IpAddr| StoredAddress::new(Some(address), &hash).get();
        let (first, last) = (self.0.network(), self.0.broadcast());
        let cut = number(self.cut().0.addr());
        match self.0 {
            IpNet::V4(four) if four.prefix_len() > V4_CUT => vec![(cut, cut), (number(first), number(last))],
            IpNet::V4(_) => vec![(number(first), number(last))],
            IpNet::V6(six) if six.prefix_len() == 128 => vec![(cut, cut), (number(first), number(first))],
            IpNet::V6(_) => vec![(cut, number(network_of(last).addr()))],
        }
    }

    /// Returns the first and the last IPv6 address, as the texts that rows of whole addresses refer
    /// to; `None` for IPv4.
    pub fn texts(self) -> Option<[[u8; 16]; 2]> {
        match self.0 {
            IpNet::V6(six) => Some([six.network().octets(), six.broadcast().octets()]),
            IpNet::V4(_) => None,
        }
    }
}

/// Writes the network as [`AddressNetwork::parse`] reads it.
impl fmt::Display for AddressNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::AddressMode;

    fn network(text: &str) -> AddressNetwork {
        AddressNetwork::parse(text).unwrap()
    }

    #[test]
    fn networks_are_parsed_and_written_without_the_bits_behind_their_prefix() {
        for (text, expected) in [
            ("192.0.2.77", Some("192.0.2.77/32")),
            ("192.0.2.77/24", Some("192.0.2.0/24")),
            ("::ffff:192.0.2.77", Some("192.0.2.77/32")),
            ("::ffff:192.0.2.77/120", Some("192.0.2.0/24")),
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("2001:db8:1:2::3", Some("2001:db8:1:2::3/128")),
            ("2001:db8:1:2::3/56", Some("2001:db8:1::/56")),
            ("2001:db8::/16", Some("2001::/16")),
            ("10.0.0.0/7", None),
            ("2001::/15", None),
            ("::ffff:192.0.2.77/90", None),
            ("0.0.0.0/0", None),
            ("192.0.2.77/33", None),
            ("2001:db8::/129", None),
            ("192.0.2", None),
            ("192.0.2.1/", None),
            ("192.0.2.1/24/24", None),
            (" 192.0.2.1", None),
            ("", None),
        ] {
            let parsed = AddressNetwork::parse(text).map(|network| network.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
            if let Some(parsed) = parsed {
                assert_eq!(network(&parsed).to_string(), parsed);
            }
        }
    }

    #[test]
    fn the_network_that_is_shown_is_the_one_that_is_kept_of_a_cut_address() {
        for (text, cut) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("192.0.0.0/16", "192.0.0.0/16"),
            ("2001:db8:1:2::3/64", "2001:db8:1::/48"),
            ("2001:db8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(network(text).cut().to_string(), cut);
        }
    }

    #[test]
    fn an_address_that_was_cut_belongs_to_all_networks_that_its_own_overlaps() {
        for (text, kept, is_contained) in [
            ("192.0.2.77", "192.0.2.77", true),
            ("192.0.2.77", "192.0.2.0", true),
            ("192.0.2.77", "192.0.2.78", false),
            ("192.0.2.77", "192.0.3.0", false),
            ("192.0.2.0/23", "192.0.3.9", true),
            ("192.0.2.64/26", "192.0.2.127", true),
            ("192.0.2.64/26", "192.0.2.128", false),
            ("2001:db8:1:2::3", "2001:db8:1::", true),
            ("2001:db8:1:2::3", "2001:db8:1:2::4", false),
            ("2001:db8:1:2::/64", "2001:db8:1:2::4", true),
            ("2001:db8::/32", "2001:db8:1::", true),
            ("2001:db8::/32", "192.0.2.0", false),
        ] {
            assert_eq!(network(text).contains(kept.parse().unwrap()), is_contained, "{text} {kept}");
        }
    }

    proptest! {
        /// Some bits are few, so that addresses are near the network.
        #[test]
        fn stored_numbers_and_texts_belong_to_the_same_networks_as_addresses(
            is_v4: bool, bits in any::<u128>(), flipped in any::<u128>(), shift in 0_u32..128,
            prefix in 16_u8..=128, is_cut: bool,
        ) {
            let address = |bits: u128| {
                if is_v4 {
                    IpAddr::V4(u32::try_from(bits >> 96).unwrap().into())
                } else {
                    IpAddr::V6((bits | 1 << 127).into())
                }
            };
            let prefix = if is_v4 { 8 + prefix % 25 } else { prefix };
            let network = network(&format!("{}/{prefix}", address(bits)));
            let mode = if is_cut { AddressMode::Cut } else { AddressMode::Full };
            let kept = mode.keep(address(bits ^ flipped.checked_shr(shift).unwrap_or(0))).unwrap();
            let stored = StoredAddress::new(Some(kept), |_| 7);
            let is_found = if stored.is_text() {
                let IpAddr::V6(kept) = kept else { panic!("{kept}") };
                network.texts().is_some_and(|[first, last]| (first..=last).contains(&kept.octets()))
            } else {
                network.numbers(|_| 7).iter().any(|(first, last)| (*first..=*last).contains(&stored.get()))
            };
            prop_assert_eq!(is_found, network.contains(kept), "{} {}", network, kept);
        }
    }
}
