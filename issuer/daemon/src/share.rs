//! A share of requests, drawn one by one.

use std::str::FromStr;

/// The share of requests to which something applies, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share(f64);

impl Share {
    /// No request at all.
    pub const NONE: Self = Self(0.0);

    /// Draws whether the next request belongs to the share.
    #[inline]
    pub fn takes_next(self) -> bool {
        const NUMBERS: f64 = 4_294_967_296.0;
        let is_drawn = || getrandom::u32().is_ok_and(|drawn| f64::from(drawn) < self.0 * NUMBERS);
        self.0 >= 1.0 || (self.0 > 0.0 && is_drawn())
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        share.map(Self).ok_or("expected a number from 0 to 1, such as 0.01")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_takes_that_part_of_requests_and_only_numbers_from_0_to_1_are_shares() {
        let taken = |text: &str| {
            let share: Share = text.parse().unwrap();
            (0..10_000).filter(|_| share.takes_next()).count()
        };
        assert_eq!((taken("0"), taken("1")), (0, 10_000));
        // Twenty standard deviations around the mean.
        assert!((2_000..3_000).contains(&taken("0.25")));
        // The smallest share is not none.
        assert_ne!("1e-12".parse(), Ok(Share::NONE));
        for text in ["", "-0.1", "1.01", "NaN", "inf", "half"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
