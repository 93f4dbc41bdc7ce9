//! Visitor keys: who visited, without a way back to the address.

use std::{hash::Hasher as _, net::IpAddr};

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// The secret of a UTC day, from which visitor keys are computed. Once it is erased, no key can be
/// traced to an address any more, and the same visitor has another key on another day.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DaySecret([u8; 16]);

impl DaySecret {
    /// Wraps 16 random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the key of a visitor, who is told by address and user agent.
    #[must_use]
    pub fn visitor(&self, client: IpAddr, user_agent: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(&octets(client));
        hasher.write(user_agent);
        hasher.finish128().h1
    }
}

impl std::fmt::Debug for DaySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DaySecret(…)")
    }
}

/// The secret of distinct addresses: one for a deployment, so that addresses can be told apart over
/// any range of days.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressSecret([u8; 16]);

impl AddressSecret {
    /// Wraps 16 random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the key of an address.
    #[must_use]
    pub fn key(&self, address: IpAddr) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(&octets(address));
        hasher.finish128().h1
    }
}

impl std::fmt::Debug for AddressSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AddressSecret(…)")
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
