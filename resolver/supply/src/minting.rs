//! The claims of numbers in a keyspace. Creators wait here while no number is in hand.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use codes::KeyspaceIndex;
use holder::{Choice, Claim, ClaimError, Entered, Fate, KeyspaceNumbers, Keyspaces, Spec};
use numbers::{Namespace, Span, StoreEpoch};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{Clock, rate::Rate};

/// The numbers of one keyspace, shared by creators and the supplier.
#[derive(Debug)]
pub struct Minting {
    /// The index of the keyspace in the database.
    pub index: KeyspaceIndex,
    /// The namespace of the keyspace at the issuer.
    pub namespace: Namespace,
    /// The count of numbers in the keyspace.
    pub capacity: u64,
    clock: Clock,
    /// A std mutex: it is held for a few instructions and never across an await.
    state: Mutex<State>,
    /// Wakes creators when numbers have come, or none will.
    pub(super) came: Notify,
    /// Wakes the supplier when numbers run low or blocks can be returned.
    pub(super) wanted: Notify,
}

#[derive(Debug)]
struct State {
    keyspace: KeyspaceNumbers,
    rate: Rate,
    /// Whether the error about a full pool was logged, and the pool has not been empty since.
    overflowing: bool,
}

/// A snapshot of the numbers of one keyspace in hand, for metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stock {
    /// The count of numbers that can be claimed at once.
    pub in_hand: u64,
    /// The part of `in_hand` that came back after a failed insert.
    pub pooled: u64,
    /// How often a number came back while the pool was full.
    pub overflowed: u64,
    /// Claims per second over the last minute.
    pub rate: f64,
}

impl Stock {
    /// Returns how long the numbers last at the current rate, in seconds. It is 0 without numbers
    /// in hand, and otherwise infinite if none are claimed.
    #[expect(clippy::cast_precision_loss, reason = "numbers in hand stay below 2^48")]
    pub fn supply_seconds(&self) -> f64 {
        if self.in_hand == 0 {
            0.0
        } else if self.rate > 0.0 {
            self.in_hand as f64 / self.rate
        } else {
            f64::INFINITY
        }
    }
}

/// How often a claim that waits looks again whether nodes are back.
const NODE_BACK: Duration = Duration::from_secs(1);

/// How long a block should last at the measured rate.
const SUPPLY: Duration = Duration::from_secs(600);

impl Minting {
    /// Creates a keyspace without numbers in hand; for `refill_permille` see [`KeyspaceNumbers`].
    pub fn new(spec: Spec, refill_permille: u64, clock: Clock) -> Self {
        let Spec { index, namespace, capacity } = spec;
        let keyspace = KeyspaceNumbers::new(refill_permille);
        Self {
            index,
            namespace,
            capacity,
            clock,
            state: Mutex::new(State { keyspace, rate: Rate::default(), overflowing: false }),
            came: Notify::new(),
            wanted: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }

    pub(super) fn spec(&self) -> Spec {
        Spec { index: self.index, namespace: self.namespace.clone(), capacity: self.capacity }
    }

    /// Claims a number, and waits for a refill until the deadline. With a choice, it is of a bucket
    /// that this wants.
    pub async fn claim(&self, choice: Option<&Choice<'_>>, deadline: Instant) -> Result<Claim, ClaimError> {
        loop {
            let came = self.came.notified();
            if let Some(claim) = self.try_claim(choice)? {
                return Ok(claim);
            }
            // A node that comes back wakes nobody.
            let soon = choice.map_or(deadline, |_| deadline.min(Instant::now() + NODE_BACK));
            if timeout_at(soon, came).await.is_err() && Instant::now() >= deadline {
                return Err(ClaimError::TimedOut);
            }
        }
    }

    /// Waits until numbers are in hand, or every number of the keyspace is used.
    pub async fn stocked(&self) {
        loop {
            let came = self.came.notified();
            let is_settled = {
                let state = self.state();
                state.keyspace.buffer.in_hand() > 0 || state.keyspace.exhausted
            };
            if is_settled {
                return;
            }
            came.await;
        }
    }

    fn try_claim(&self, choice: Option<&Choice<'_>>) -> Result<Option<Claim>, ClaimError> {
        let mut state = self.state();
        let away = state.keyspace.buffer.away;
        let claim = match choice {
            Some(choice) => state.keyspace.claim_of(choice),
            None => state.keyspace.claim(),
        };
        let given_up = state.keyspace.buffer.away - away;
        if given_up > 0 {
            // One in each create, while the alert on the node tells why.
            tracing::debug!(namespace = %self.namespace, numbers = given_up, "numbers of nodes that are away are given up");
        }
        if state.keyspace.wants_block(|| self.clock.now()) {
            self.wanted.notify_one();
        }
        claim
    }

    /// Settles a claim. An unused number wakes the creators that wait.
    pub fn settle(&self, claim: Claim, fate: Fate) {
        let mut state = self.state();
        let before = state.keyspace.buffer.overflowed;
        state.keyspace.buffer.settle(claim, fate);
        let full = state.keyspace.buffer.overflowed > before;
        let alarm = full && !state.overflowing;
        state.overflowing = full || (state.overflowing && state.keyspace.buffer.pooled() > 0);
        drop(state);
        if alarm {
            tracing::error!(
                namespace = %self.namespace,
                "the pool of numbers whose insert failed is full: does the database refuse every insert?"
            );
        }
        if fate == Fate::Unused {
            self.came.notify_waiters();
        }
    }

    /// Adds a registered block. For a block that was taken over, `left` holds its unused ranges.
    pub fn add(&self, entered: Entered, left: Option<Vec<Span>>) {
        self.state().keyspace.add(entered, left);
        self.came.notify_waiters();
    }

    /// Gives up the remaining numbers of a history that has ended.
    pub fn give_up(&self, history: &StoreEpoch) {
        let numbers = self.state().keyspace.buffer.give_up(history);
        if numbers > 0 {
            tracing::error!(
                namespace = %self.namespace,
                numbers,
                %history,
                "the database has failed over: the numbers in hand are given up"
            );
        }
        self.wanted.notify_one();
    }

    /// Refuses every claim from now on.
    pub(super) fn close(&self) {
        self.state().keyspace.closed = true;
        self.came.notify_waiters();
    }

    /// Samples the count of claims for the rate. The caller does this about once a second.
    pub fn sample(&self, now: Instant) {
        let mut state = self.state();
        let claims = state.keyspace.buffer.claims;
        state.rate.sample(now, claims);
    }

    /// Returns the length of a block that lasts for ten minutes at the rate of the last minute, at
    /// least 1.
    pub(super) fn wanted_len(&self, now: Instant) -> u64 {
        self.sample(now);
        self.state().rate.claims_in(SUPPLY).clamp(1, Span::LIMIT)
    }

    /// Returns a snapshot of the numbers in hand.
    pub fn stock(&self) -> Stock {
        let state = self.state();
        let buffer = &state.keyspace.buffer;
        Stock {
            in_hand: buffer.in_hand(),
            pooled: buffer.pooled(),
            overflowed: buffer.overflowed,
            rate: state.rate.per_second(),
        }
    }
}

/// The keyspaces of a holder as its core borrows them, each under its own lock.
pub(super) struct Shared<'a>(pub(super) &'a [Arc<Minting>]);

impl Keyspaces for Shared<'_> {
    fn with<T>(&mut self, keyspace: usize, act: impl FnOnce(&mut KeyspaceNumbers) -> T) -> T {
        act(&mut self.0[keyspace].state().keyspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_hand_lasts_no_time_whatever_the_rate() {
        let stock = |in_hand, rate| Stock { in_hand, pooled: 0, overflowed: 0, rate }.supply_seconds();
        assert_eq!([stock(0, 0.0), stock(0, 7.0), stock(14, 7.0)], [0.0, 0.0, 2.0]);
        assert!(stock(1, 0.0).is_infinite());
    }

    #[tokio::test]
    async fn a_process_that_mints_no_more_refuses_at_once_and_wakes_those_that_wait() {
        let index = KeyspaceIndex::new(1).unwrap();
        let minting = Arc::new(Minting::new(
            Spec { index, namespace: Namespace::new("web").unwrap(), capacity: 10 },
            200,
            Clock::start(),
        ));
        let waits = minting.claim(None, Instant::now() + Duration::from_secs(3_600));
        let closes = async { minting.close() };
        assert_eq!(tokio::join!(waits, closes).0, Err(ClaimError::Closed));
        assert!(!minting.state().keyspace.wants_block(|| numbers::Millis(0)));
    }
}
