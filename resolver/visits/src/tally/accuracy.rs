//! How far counts of distinct keys are off, over seeded sets of keys.

use super::Uniques;

/// The greatest deviation that the counts may have.
const BOUND: f64 = 0.025;

/// Returns keys that are distinct within a seed, and look like hashes.
fn key(seed: u64, number: u64) -> u64 {
    // A Weyl sequence and a finalizer of 64 bits (Murmur3's), both bijections.
    let mut key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        key = (key ^ key >> 33).wrapping_mul(factor);
    }
    key ^ key >> 33
}

fn uniques(seed: u64, numbers: impl Iterator<Item = u64>) -> Uniques {
    let mut uniques = Uniques::default();
    numbers.for_each(|number| uniques.add(key(seed, number)));
    uniques
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
fn deviation(uniques: &Uniques, count: u64) -> f64 {
    (uniques.estimate().count as f64 - count as f64) / count as f64
}

#[test]
fn sets_of_up_to_a_thousand_keys_are_exact_in_99_of_100_cases() {
    let is_exact = |seed: u64, count: u64| {
        let estimate = uniques(seed, 0..count).estimate();
        assert!(estimate.is_exact && estimate.count.abs_diff(count) <= 2, "{count} keys: {estimate:?}");
        estimate.count == count
    };
    let thousands = (0..1_000).filter(|seed| is_exact(*seed, 1_000)).count();
    assert!(thousands >= 990);
    let sampled = (0..1_000).filter(|seed| is_exact(*seed + 1_000, 1 + seed * 7_919 % 1_000)).count();
    assert!(sampled >= 990);
}

#[test]
fn large_sets_are_within_the_bound() {
    for (count, seeds) in [(1_000, 40), (10_000, 40), (100_000, 20), (1_000_000, 10), (10_000_000, 3)] {
        let deviations: Vec<f64> =
            (0..seeds).map(|seed| deviation(&uniques(seed, 0..count), count)).collect();
        assert!(deviations.iter().all(|one| one.abs() <= BOUND), "{count} keys: {deviations:?}");
    }
}

#[test]
fn the_transition_from_a_list_to_registers_is_within_the_bound() {
    for seed in 0..10 {
        let mut uniques = Uniques::default();
        for number in 0..4_000 {
            uniques.add(key(seed, number));
            if number > 2_000 && number % 100 == 0 {
                assert!(deviation(&uniques, number + 1).abs() <= BOUND, "seed {seed}, {number} keys");
            }
        }
    }
}

#[test]
fn a_year_of_overlapping_days_is_within_the_bound() {
    // Each day has the keys of the days before but for the first ones, and new ones.
    for (seed, len, step) in [(1, 200, 150), (2, 20_000, 5_000), (3, 3_000, 10), (4, 5_000, 5_000)] {
        let mut year = Uniques::default();
        for day in 0..365 {
            let column = uniques(seed, day * step..day * step + len).chunk();
            year.merge_chunks("addresses", &column).unwrap();
        }
        let count = 364 * step + len;
        assert!(deviation(&year, count).abs() <= BOUND, "{count} keys");
    }
}
