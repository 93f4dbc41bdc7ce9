//! Clocks that run faster or slower than the agenda, by at most as much as the margin of a ceiling
//! allows for.

/// How fast a clock runs that is exact.
const EXACT: u64 = 1_000;

/// A clock, by how far it gets in a second, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(u64);

impl Clock {
    /// A clock that agrees with the agenda.
    pub(super) const fn exact() -> Self {
        Self(EXACT)
    }

    /// The slowest, an exact, or the fastest clock that differs by so many thousandths.
    pub(super) fn choices(drift: u64) -> [Self; 3] {
        [Self(EXACT - drift), Self(EXACT), Self(EXACT + drift)]
    }

    /// The milliseconds that it shows at a time of the agenda.
    pub(super) fn shows(self, time: u64) -> u64 {
        time * self.0 / EXACT
    }

    /// The first time of the agenda at which it shows so many milliseconds.
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
