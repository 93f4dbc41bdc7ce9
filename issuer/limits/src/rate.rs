//! Rates: amounts that are spent and recover evenly.
//!
//! 1. A rate is a fixed table of counters, so a flood from many addresses takes no memory. Two
//!    clients may share a counter, and then share their rate. Outsiders cannot predict which ones
//!    do.
//! 2. A unit may be given back: a right password or an existing code costs nothing.
//!
//! Rejected: the crate `governor`. It has one quota for all keys of a limiter, takes nothing back,
//! and its tables of keys grow with a flood until they are swept. What is left of it is the
//! arithmetic of one line here.

use std::{
    hash::{BuildHasher, Hash},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use foldhash::quality::RandomState;
use tokio::time::Instant;

/// Number of counters of a rate; they take half a megabyte.
const COUNTERS: usize = 65_536;
/// The time in which a spent rate recovers completely.
pub const MINUTE: Duration = Duration::from_secs(60);

/// A rate for each client that starts full, holds the amount for one minute and recovers evenly.
///
/// It is the generic cell rate algorithm (ITU-T I.371), which needs one number for each client: the
/// time at which the rate will be full again.
pub struct Rate {
    per_minute: u32,
    since: Instant,
    /// When each counter's rate will be full again, in microseconds since the start. A rate that
    /// nobody uses takes no memory.
    full_again: OnceLock<Box<[AtomicU64]>>,
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
        let (full_again, hasher) = (OnceLock::new(), RandomState::default());
        Self { per_minute, since: Instant::now(), full_again, hasher }
    }

    /// Spends one unit of a client's rate, and returns what is left, or else the time until a unit
    /// has recovered.
    pub fn spend(&self, client: impl Hash) -> Result<Left, Duration> {
        self.spend_of(client, self.per_minute)
    }

    /// Like [`Rate::spend`], for a client with `per_minute` units a minute; 0 means unlimited.
    /// Returns the time until a unit has recovered.
    pub fn spend_of(&self, client: impl Hash, per_minute: u32) -> Result<Left, Duration> {
        let Some(cost) = cost(per_minute) else {
            return Ok(Left { count: u64::MAX, full_in: Duration::ZERO });
        };
        let now = self.since.elapsed();
        let (now, most) = (micros(now), micros(now + MINUTE));
        let spent = |full_again: u64| Some(full_again.max(now) + cost).filter(|spent| *spent <= most);
        match self.counter(client).fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent) {
            Ok(before) => {
                let full_again = before.max(now) + cost;
                let full_in = Duration::from_micros(full_again - now);
                Ok(Left { count: (most - full_again) / cost, full_in })
            }
            Err(full_again) => Err(Duration::from_micros(full_again + cost - most)),
        }
    }

    /// Gives one unit of [`Rate::spend`] back.
    pub fn give_back(&self, client: impl Hash) {
        let Some(cost) = cost(self.per_minute) else { return };
        // A time in the past means a full rate. The update cannot fail: the closure returns `Some`.
        let back = |full_again: u64| Some(full_again.saturating_sub(cost));
        let _ = self.counter(client).fetch_update(Ordering::Relaxed, Ordering::Relaxed, back);
    }

    fn counter(&self, client: impl Hash) -> &AtomicU64 {
        let counters = self.full_again.get_or_init(|| (0..COUNTERS).map(|_| AtomicU64::new(0)).collect());
        let place = usize::try_from(self.hasher.hash_one(client) >> 32).unwrap_or(0);
        &counters[place % COUNTERS]
    }
}

/// Returns the time in which one unit recovers, in microseconds; `None` if there is no limit, or so
/// high a one that a unit takes no time.
fn cost(per_minute: u32) -> Option<u64> {
    micros(MINUTE).checked_div(per_minute.into()).filter(|cost| *cost > 0)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_a_minutes_worth_and_grows_evenly() {
        let rate = Rate::new(60);
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        for _ in 0..60 {
            assert!(rate.spend(one).is_ok());
        }
        for _ in 0..1_000 {
            assert_eq!(rate.spend(one), Err(Duration::from_secs(1)), "nobody gets into debt");
        }
        let left = Left { count: 59, full_in: Duration::from_secs(1) };
        assert_eq!(rate.spend(other), Ok(left), "each has its own");
        rate.give_back(one);
        assert!(rate.spend(one).is_ok());
        advance(Duration::from_secs(2)).await;
        assert_eq!([(); 3].map(|()| rate.spend(one).is_ok()), [true, true, false], "two have grown");
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_may_be_one_of_its_own_or_none() {
        let rate = Rate::new(0);
        let counts = [(); 3].map(|()| rate.spend_of("own", 3).map(|left| left.count));
        assert_eq!(counts, [Ok(2), Ok(1), Ok(0)]);
        assert_eq!(rate.spend_of("own", 3), Err(Duration::from_secs(20)));
        assert!((0..1_000).all(|_| rate.spend("own").is_ok()));
        assert!(rate.spend_of("own", u32::MAX).is_ok());
    }
}
