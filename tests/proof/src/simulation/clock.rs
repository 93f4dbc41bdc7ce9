//! Clocks that run faster or slower than the agenda, by at most as much as the margin of a ceiling
//! allows.

/// The speed of an exact clock, in milliseconds per second.
const EXACT: u64 = 1_000;

/// A clock, given by its speed in milliseconds per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(u64);

impl Clock {
    /// Returns a clock that agrees with the agenda.
    pub(super) const fn exact() -> Self {
        Self(EXACT)
    }

    /// Returns the slowest, an exact and the fastest clock for a drift in thousandths.
    pub(super) fn choices(drift: u64) -> [Self; 3] {
        [Self(EXACT - drift), Self(EXACT), Self(EXACT + drift)]
    }

    /// Returns the milliseconds that the clock shows at a time of the agenda.
    pub(super) fn shows(self, time: u64) -> u64 {
        time * self.0 / EXACT
    }

    /// Returns the first time of the agenda at which the clock shows this many milliseconds.
    pub(super) fn time_of(self, shown: u64) -> u64 {
        (shown * EXACT).div_ceil(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_time_first_when_it_is_said_to() {
        for clock in Clock::choices(50) {
            for shown in 1..3_000 {
                let time = clock.time_of(shown);
                assert!(clock.shows(time) >= shown && clock.shows(time - 1) < shown, "{clock:?}, {shown}");
            }
        }
    }
}
