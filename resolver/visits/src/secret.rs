//! Secrets that key hashes: of texts, of visitors without a way back to the address, and of
//! addresses.

use std::{fmt, hash::Hasher as _, net::IpAddr};

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Defines a secret of 16 random bytes. Its debug form hides it.
macro_rules! secret {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Wraps 16 random bytes.
            pub fn new(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    };
}

secret! {
    /// The key of text hashes: one for a deployment, so that all resolvers share texts. It is
    /// secret, so that a visitor cannot make two texts with the same hash.
    TextKey
}

secret! {
    /// The secret of a UTC day, from which visitor keys are computed. Once it is erased, no key can
    /// be traced to an address any more, and the same visitor has another key on another day.
    DaySecret
}

secret! {
    /// The secret of distinct addresses: one for a deployment, so that addresses can be told apart
    /// over any range of days.
    AddressSecret
}

codes::stored_number! {
    /// The hash of a text. 0 stands for the empty text.
    pub struct TextHash(i64);
}

impl TextHash {
    /// The empty text.
    pub const EMPTY: Self = Self(0);
    /// A text that was not kept, because too many new ones arrived at once.
    pub const OTHER: Self = Self(1);
}

impl TextKey {
    /// Returns the hash of a text.
    pub fn hash(&self, text: &[u8]) -> TextHash {
        if text.is_empty() {
            return TextHash::EMPTY;
        }
        let hash = keyed(&self.0, &[text]).cast_signed();
        TextHash(if matches!(hash, 0 | 1) { 2 } else { hash })
    }
}

impl DaySecret {
    /// Returns the key of a visitor, who is told by address and user agent.
    pub fn visitor(&self, client: IpAddr, user_agent: &[u8]) -> u64 {
        keyed(&self.0, &[&octets(client), user_agent])
    }
}

impl AddressSecret {
    /// Returns the key of an address.
    pub fn key(&self, address: IpAddr) -> u64 {
        keyed(&self.0, &[&octets(address)])
    }
}

/// Returns the keyed hash of parts, one after another.
fn keyed(secret: &[u8; 16], parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(secret);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish128().h1
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
    fn texts_have_hashes_that_depend_on_the_key() {
        let (one, other) = (TextKey::new([1; 16]), TextKey::new([2; 16]));
        assert_eq!(one.hash(b""), TextHash::EMPTY);
        assert_eq!(one.hash(b"a"), one.hash(b"a"));
        assert_ne!(one.hash(b"a"), one.hash(b"b"));
        assert_ne!(one.hash(b"a"), other.hash(b"a"));
        assert_eq!(format!("{one:?}"), "TextKey(…)");
    }

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
