//! Buckets of a link's visitors, for conditions that hold for a share of them.

use std::{fmt, hash::Hasher as _, net::IpAddr};

use codes::LinkId;
use siphasher::sip::SipHasher13;

/// Number of buckets, so that each is a percent of the visitors.
const BUCKETS: u64 = 100;

/// Assigns each visitor of a link to one of a hundred buckets of the same size.
///
/// 1. A visitor is recognized by address and user agent. Of an IPv6 address only the /64 network
///    counts, since the rest of it changes within a day.
/// 2. A visitor stays in the same bucket, on every resolver, and whatever the rules are. Nothing is
///    stored, neither here nor by the browser.
/// 3. The key is secret and the link is hashed too, so a bucket says nothing about who a visitor
///    is, and the bucket of another visitor cannot be found out.
#[derive(Clone, Copy)]
pub struct Buckets {
    key: [u8; 16],
    link: LinkId,
}

impl Buckets {
    /// Creates the buckets of a link's visitors. The key is the same on every resolver.
    pub fn new(key: [u8; 16], link: LinkId) -> Self {
        Self { key, link }
    }

    /// Returns the bucket of a visitor, 0 to 99.
    pub(super) fn find(&self, address: IpAddr, user_agent: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(&self.link.get().to_le_bytes());
        hasher.write(&network(address).to_be_bytes());
        hasher.write(user_agent.as_bytes());
        hasher.finish() % BUCKETS
    }
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buckets({:?}, …)", self.link)
    }
}

/// Returns the part of an address that counts.
fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(four) => four.to_ipv6_mapped().to_bits(),
        IpAddr::V6(six) => six.to_bits() & !u128::from(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VISITORS: u32 = 1_000_000;

    fn buckets(key: u8, link: i64) -> Buckets {
        Buckets::new([key; 16], LinkId::from_stored(link))
    }

    #[test]
    fn a_million_visitors_are_spread_evenly_and_differently_for_each_link_and_key() {
        let all = [buckets(1, 1), buckets(1, 2), buckets(2, 1)];
        let mut counts = [[0.0_f64; 100]; 3];
        let mut same = [0.0_f64; 3];
        for visitor in 0..VISITORS {
            let address = IpAddr::from(visitor.to_be_bytes());
            let found = all.map(|one| usize::try_from(one.find(address, "Mozilla/5.0")).unwrap());
            found.iter().zip(&mut counts).for_each(|(bucket, counts)| counts[*bucket] += 1.0);
            for (place, (one, other)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
                same[place] += f64::from(u8::from(found[one] == found[other]));
            }
        }
        let expected = f64::from(VISITORS) / 100.0;
        for counts in counts {
            let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            // 99 degrees of freedom: mean 99, standard deviation 14.
            assert!((29.0..169.0).contains(&chi), "chi-square {chi}");
        }
        for same in same {
            // Standard deviation 99.
            assert!((same - expected).abs() < 500.0, "{same} visitors have the same bucket twice");
        }
    }

    #[test]
    fn a_visitor_stays_in_one_bucket() {
        let find = |address: &str, user_agent: &str| {
            // One bucket may be the same by chance, and twenty may not.
            let address: IpAddr = address.parse().unwrap();
            (1..=20).map(|link| buckets(1, link).find(address, user_agent)).collect::<Vec<_>>()
        };
        for (one, other, is_same) in [
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "::ffff:192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::1", "0.0.0.1", false),
        ] {
            assert_eq!(find(one, "a") == find(other, "a"), is_same, "{one} {other}");
        }
        assert_ne!(find("192.0.2.7", "a"), find("192.0.2.7", "b"));
        assert_eq!(format!("{:?}", buckets(1, 7)), "Buckets(LinkId(0/7), …)");
    }
}
