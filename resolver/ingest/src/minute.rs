//! Amounts that visitors may use up in a minute.

use std::time::Duration;

const LENGTH: Duration = Duration::from_secs(60);

/// The rest of an amount in the present minute.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    began: Option<Duration>,
    left: usize,
}

impl Minute {
    /// Returns what is left of `amount`. `now` is the time since any fixed instant.
    pub(crate) fn left(&mut self, amount: usize, now: Duration) -> &mut usize {
        if self.began.is_none_or(|began| now >= began + LENGTH) {
            *self = Self { began: Some(now), left: amount };
        }
        &mut self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_that_of_a_minute() {
        let mut minute = Minute::default();
        let mut left = |second| *minute.left(9, Duration::from_secs(second));
        assert_eq!([left(7), left(66)], [9, 9]);
        *minute.left(9, Duration::from_secs(66)) = 0;
        let mut left = |second| *minute.left(9, Duration::from_secs(second));
        assert_eq!([left(66), left(67)], [0, 9]);
    }
}
