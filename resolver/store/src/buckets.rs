//! Buckets: the parts into which a distributed database divides the links by their ids, so that
//! each node has some of them.
//!
//! The division is that of Citus, which keeps a row where the hash of its key says. So no column
//! differs from those on one Postgres. Rejected: a column with the upper bits of
//! the id. Consecutive numbers would share a bucket without anybody choosing them, but all
//! resolvers would then write to the same one or two nodes, and a block of numbers could not be
//! used at all while its node is away.

use std::collections::BTreeMap;

use codes::LinkId;
use links::NewLink;

/// A bucket, by its place in the order of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket(pub usize);

/// The division of all ids into buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// The first hash of each bucket, ascending.
    first: Vec<i32>,
}

impl Buckets {
    /// Creates the division whose buckets begin at these hashes. Returns `None` unless they ascend
    /// from the lowest hash.
    pub(crate) fn new(first: Vec<i32>) -> Option<Self> {
        let is_whole = first.first() == Some(&i32::MIN) && first.is_sorted_by(|one, next| one < next);
        is_whole.then_some(Self { first })
    }

    /// Returns the bucket of a link.
    pub(crate) fn of(&self, id: LinkId) -> Bucket {
        let hash = hash(id.get());
        Bucket(self.first.partition_point(|first| *first <= hash) - 1)
    }
}

/// Returns the places of the links of each bucket.
pub(crate) fn by_bucket(links: &[NewLink], of: impl Fn(LinkId) -> Bucket) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<Bucket, Vec<usize>> = BTreeMap::new();
    for (place, link) in links.iter().enumerate() {
        places.entry(of(link.id)).or_default().push(place);
    }
    places.into_values().collect()
}

/// Returns Postgres' hash of a `bigint`: `hashint8`, which is Bob Jenkins' `lookup3` of 32 bits.
/// The upper half is folded in, so that numbers of 32 bits have the same hash in all types.
#[expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a hash is of bits"
)]
fn hash(id: i64) -> i32 {
    let (low, high) = (id as u32, (id >> 32) as u32);
    let word = low ^ if id < 0 { !high } else { high };
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start.wrapping_add(word), start, start);
    let mix =
        |into: &mut u32, with: u32, bits: u32| *into = (*into ^ with).wrapping_sub(with.rotate_left(bits));
    mix(&mut c, b, 14);
    mix(&mut a, c, 11);
    mix(&mut b, a, 25);
    mix(&mut c, b, 16);
    mix(&mut a, c, 4);
    mix(&mut b, a, 14);
    mix(&mut c, b, 24);
    c as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_postgres() {
        // SELECT id, hashint8(id), of Postgres 15.
        let known = [
            (0, -272_711_505),
            (1, -1_905_060_026),
            (-1, 385_747_274),
            (4_294_967_296, -1_905_060_026),
            (281_474_976_710_656, 32_085_720),
            (i64::MAX, -1_524_351_049),
            (i64::MIN, -96_758_253),
        ];
        for (id, expected) in known {
            assert_eq!(hash(id), expected, "{id}");
        }
    }

    #[test]
    fn each_id_is_in_the_bucket_whose_hashes_it_is_among() {
        let quarters = Buckets::new(vec![i32::MIN, i32::MIN / 2, 0, i32::MAX / 2 + 1]).unwrap();
        let mut counts = [0; 4];
        for id in 0..40_000 {
            let Bucket(at) = quarters.of(LinkId::from_stored(id));
            let from = i64::from(hash(id)) - i64::from(i32::MIN);
            assert_eq!(at, usize::try_from(from >> 30).unwrap());
            counts[at] += 1;
        }
        assert!(counts.iter().all(|count| (9_700..10_300).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_division_has_no_gap() {
        assert!(Buckets::new(vec![i32::MIN]).is_some());
        for bad in [vec![], vec![0], vec![i32::MIN, 5, 5], vec![i32::MIN, 5, 4]] {
            assert_eq!(Buckets::new(bad), None);
        }
    }
}
