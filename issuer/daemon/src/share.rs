//! A share of requests, drawn one by one.

use std::str::FromStr;

/// The share of requests to which something applies, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Of 2³² − 1.
    threshold: u32,
}

impl Share {
    /// No request at all.
    pub const NONE: Self = Self { threshold: 0 };

    /// Draws whether the next request belongs to the share.
    #[inline]
    pub fn takes_next(self) -> bool {
        match self.threshold {
            0 => false,
            u32::MAX => true,
            threshold => getrandom::u32().is_ok_and(|drawn| drawn < threshold),
        }
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        let share = share.ok_or("expected a number from 0 to 1, such as 0.01")?;
        // The product is between zero and the largest number, so nothing is cut off.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let threshold = (share * f64::from(u32::MAX)).ceil() as u32;
        Ok(Self { threshold })
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
