//! Rates: amounts that are spent and recover evenly.
//!
//! A rate is a fixed table of counters, so a flood from many addresses takes no memory. Two clients
//! may share a counter, and then share their rate. Outsiders cannot predict which ones do.

use std::{
    hash::{BuildHasher, Hash},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use foldhash::quality::RandomState;

/// Number of counters of a rate; they take half a megabyte.
const COUNTERS: usize = 65_536;
/// The time in which a spent rate recovers completely.
pub const MINUTE: Duration = Duration::from_secs(60);

/// A rate for each client that starts full, holds the amount for one minute and recovers evenly.
///
/// It is the generic cell rate algorithm (ITU-T I.371), which needs one number for each client: the
/// time at which the rate will be full again.
pub struct Rate {
    /// When each counter's rate will be full again, in microseconds since the start.
    full_again: Box<[AtomicU64]>,
    /// The time in which one unit recovers, in microseconds; 0 for an unlimited rate.
    cost: u64,
    hasher: RandomState,
}

/// The remainder of a client's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The number of units left.
    pub count: u64,
    /// The time until the rate is full again.
    pub full_in: Duration,
}

impl Rate {
    /// Creates a rate of `per_minute` units a minute for each client; 0 means unlimited.
    pub fn new(per_minute: u32) -> Self {
        let counters = if per_minute == 0 { 0 } else { COUNTERS };
        Self { full_again: counters_of(counters), cost: cost(per_minute), hasher: RandomState::default() }
    }

    /// Creates a rate whose limit is passed with each use, to [`Rate::spend_of`].
    pub fn with_counters() -> Self {
        Self { full_again: counters_of(COUNTERS), cost: 0, hasher: RandomState::default() }
    }

    fn counter(&self, client: impl Hash) -> Option<&AtomicU64> {
        let place = usize::try_from(self.hasher.hash_one(client) >> 32).unwrap_or(0);
        self.full_again.get(place.checked_rem(self.full_again.len())?)
    }

    /// Spends one unit of a client's rate, and returns what is left.
    ///
    /// # Errors
    /// Returns the time until a unit has recovered.
    pub fn spend(&self, client: impl Hash, now: Duration) -> Result<Left, Duration> {
        self.take(client, now, self.cost)
    }

    /// Like [`Rate::spend`], for a client with `per_minute` units a minute.
    pub fn spend_of(&self, client: impl Hash, now: Duration, per_minute: u32) -> Result<Left, Duration> {
        self.take(client, now, cost(per_minute))
    }

    fn take(&self, client: impl Hash, now: Duration, cost: u64) -> Result<Left, Duration> {
        let Some(counter) = self.counter(client).filter(|_| cost > 0) else {
            return Ok(Left { count: u64::MAX, full_in: Duration::ZERO });
        };
        let (now, most) = (micros(now), micros(now + MINUTE));
        let spent = |full_again: u64| Some(full_again.max(now) + cost).filter(|spent| *spent <= most);
        match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent) {
            Ok(before) => {
                let full_again = before.max(now) + cost;
                let full_in = Duration::from_micros(full_again - now);
                Ok(Left { count: (most - full_again) / cost, full_in })
            }
            Err(full_again) => Err(Duration::from_micros(full_again + cost - most)),
        }
    }

    /// Gives one unit back. Has no effect on a rate of [`Rate::with_counters`].
    pub fn give_back(&self, client: impl Hash) {
        let Some(counter) = self.counter(client) else { return };
        // A time in the past means a full rate, whatever it is. The update cannot fail, because the
        // closure always returns `Some`.
        let back = |full_again: u64| Some(full_again.saturating_sub(self.cost));
        let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, back);
    }
}

fn counters_of(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

fn cost(per_minute: u32) -> u64 {
    micros(MINUTE).checked_div(per_minute.into()).unwrap_or(0)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_rate_is_a_minutes_worth_and_grows_evenly() {
        let rate = Rate::new(60);
        let (one, other, start) = (ip("192.0.2.1"), ip("192.0.2.2"), Duration::from_secs(100));
        for _ in 0..60 {
            assert!(rate.spend(one, start).is_ok());
        }
        for _ in 0..1_000 {
            assert_eq!(rate.spend(one, start), Err(Duration::from_secs(1)), "nobody gets into debt");
        }
        let left = Left { count: 59, full_in: Duration::from_secs(1) };
        assert_eq!(rate.spend(other, start), Ok(left), "each has its own");
        let threes = Rate::with_counters();
        let counts = [(); 3].map(|()| threes.spend_of(one, start, 3).map(|left| left.count));
        assert_eq!(counts, [Ok(2), Ok(1), Ok(0)]);
        assert_eq!(threes.spend_of(one, start, 3), Err(Duration::from_secs(20)));
        rate.give_back(one);
        assert!(rate.spend(one, start).is_ok());
        let later = start + Duration::from_secs(2);
        assert_eq!([(); 3].map(|()| rate.spend(one, later).is_ok()), [true, true, false], "two have grown");
        let free = Rate::new(0);
        assert!((0..1_000).all(|_| free.spend(one, start).is_ok()));
    }
}
