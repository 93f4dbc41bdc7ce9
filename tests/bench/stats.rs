//! Statistics: percentiles of one round, and medians over rounds.

use std::time::Duration;

/// The latencies of one round, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Sorts the samples, which may come in any order.
    pub(crate) fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// Returns the number of samples.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the smallest latency that `percent` % of the samples do not exceed (nearest rank),
    /// in milliseconds; 0 without samples.
    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// Returns the median; of an even number of values, the upper of the middle two. Returns 0 without
/// values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Latencies, median};

    #[test]
    fn percentiles_are_samples_at_the_nearest_rank() {
        let latencies = Latencies::new((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(latencies.len(), 200);
        assert_eq!(
            [0, 50, 99, 100].map(|percent| latencies.percentile_ms(percent)),
            [1.0, 100.0, 198.0, 200.0]
        );
        let one = Latencies::new(vec![Duration::from_millis(7)]);
        assert_eq!([50, 99].map(|percent| one.percentile_ms(percent)), [7.0, 7.0]);
        assert_eq!(Latencies::default().percentile_ms(99).total_cmp(&0.0), std::cmp::Ordering::Equal);
    }

    #[test]
    fn a_median_is_not_moved_by_one_wild_round() {
        assert_eq!([median([2.0, 900.0, 1.0]), median([5.0]), median([])], [2.0, 5.0, 0.0]);
    }
}
