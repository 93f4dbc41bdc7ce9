//! Visitor keys: who visited, without a way back to the address.

use std::net::IpAddr;

use crate::secret::secret;

secret! {
    /// The secret of a UTC day, from which visitor keys are computed. Once it is erased, no key can
    /// be traced to an address any more, and the same visitor has another key on another day.
    DaySecret
}

impl DaySecret {
    /// Returns the key of a visitor, who is told by address and user agent.
    pub fn visitor(&self, client: IpAddr, user_agent: &[u8]) -> u64 {
        self.keyed(&[&octets(client), user_agent])
    }
}

secret! {
    /// The secret of distinct addresses: one for a deployment, so that addresses can be told apart
    /// over any range of days.
    AddressSecret
}

impl AddressSecret {
    /// Returns the key of an address.
    pub fn key(&self, address: IpAddr) -> u64 {
        self.keyed(&[&octets(address)])
    }
}

/// Returns the bytes of an address. IPv4 addresses have the same in either form.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_are_told_apart_within_a_day_and_not_across_days() {
        let (today, tomorrow) = (DaySecret::new([1; 16]), DaySecret::new([2; 16]));
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        assert_eq!(today.visitor(one, b"a"), today.visitor("::ffff:192.0.2.1".parse().unwrap(), b"a"));
        assert_ne!(today.visitor(one, b"a"), today.visitor(other, b"a"));
        assert_ne!(today.visitor(one, b"a"), today.visitor(one, b"b"));
        assert_ne!(today.visitor(one, b"a"), tomorrow.visitor(one, b"a"));
        let addresses = AddressSecret::new([1; 16]);
        assert_ne!(addresses.key(one), addresses.key(other));
    }
}
