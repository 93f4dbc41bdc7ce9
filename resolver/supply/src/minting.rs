//! Creators claim numbers here, and wait when there are none.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use codes::KeyspaceIndex;
use numbers::{Namespace, Span, StoreEpoch};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{
    buffer::{Buffer, Claim, Closed, Entered, Fate},
    demand::Demand,
    rate::Rate,
};

/// One keyspace's numbers, shared by creators and the supplier.
#[derive(Debug)]
pub struct Minting {
    /// Which keyspace.
    pub index: KeyspaceIndex,
    /// The issuer's namespace of it.
    pub namespace: Namespace,
    capacity: u64,
    refill_permille: u64,
    /// A std mutex: it is held for a few instructions and never across an await.
    state: Mutex<State>,
    /// Wakes creators when numbers came.
    came: Notify,
    /// Wakes the supplier when numbers run low or a block is used up.
    wanted: Notify,
}

#[derive(Debug, Default)]
struct State {
    buffer: Buffer,
    demand: Demand,
    /// Whether the issuer has said that every number is used.
    exhausted: bool,
    /// Whether this process mints no more.
    closed: bool,
    /// Unused and burned numbers on their way back to the issuer.
    returning: u64,
    rate: Rate,
    /// Whether the alarm of a full pool was raised and has not ended.
    overflowing: bool,
}

/// What an operator may want to know of the numbers of one keyspace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stock {
    /// Numbers that can be claimed at once.
    pub in_hand: u64,
    /// Those of them that came back after a failed insert.
    pub pooled: u64,
    /// How often the pool was full.
    pub overflowed: u64,
    /// Claims per second over the last minute.
    pub rate: f64,
}

impl Stock {
    /// How long the numbers last at the current rate, in seconds: 0 with none in hand, else without end when none are claimed.
    #[must_use]
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

/// A block is meant to last this long at the measured rate.
const SUPPLY: Duration = Duration::from_secs(600);

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The issuer did not deliver in time.
    #[error("no number came in time")]
    TimedOut,
    /// All numbers of the keyspace are used.
    #[error("the keyspace is exhausted")]
    Exhausted,
    /// This process mints no more: its blocks are another's now.
    #[error("this process mints no more")]
    Closed,
}

impl State {
    /// Whether to ask for a block. An exhausted keyspace is asked about in any case: its numbers may have come back.
    fn wants_block(&self, permille: u64) -> bool {
        !self.closed && self.buffer.wants_block(permille) && (self.exhausted || self.demand.asks())
    }
}

/// Numbers of a closed block, unused or burned, that the issuer has not taken back yet.
#[derive(Debug)]
pub(super) struct OnTheWay {
    minting: Arc<Minting>,
    numbers: u64,
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.minting.state().returning -= self.numbers;
    }
}

impl Minting {
    /// Numbers of a keyspace, none in hand yet. `refill_permille` says how much of a block is used when the next one is
    /// fetched; resolvers differ in it, so that those started together do not ask together.
    #[must_use]
    pub fn new(index: KeyspaceIndex, namespace: Namespace, capacity: u64, refill_permille: u64) -> Self {
        Self {
            index,
            namespace,
            capacity,
            refill_permille,
            state: Mutex::new(State::default()),
            came: Notify::new(),
            wanted: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }

    /// Claims a number, waiting for a refill until the deadline.
    ///
    /// # Errors
    /// When none came, or there are none left.
    pub async fn claim(&self, deadline: Instant) -> Result<Claim, ClaimError> {
        loop {
            let came = self.came.notified();
            if let Some(claim) = self.try_claim()? {
                return Ok(claim);
            }
            timeout_at(deadline, came).await.map_err(|_| ClaimError::TimedOut)?;
        }
    }

    pub(super) fn try_claim(&self) -> Result<Option<Claim>, ClaimError> {
        let mut state = self.state();
        if state.closed {
            return Err(ClaimError::Closed);
        }
        let claim = state.buffer.claim();
        if claim.is_none() {
            state.demand.is_unmet();
        }
        if state.wants_block(self.refill_permille) {
            self.wanted.notify_one();
        }
        if claim.is_none() && state.exhausted { Err(ClaimError::Exhausted) } else { Ok(claim) }
    }

    /// Takes a claim back.
    pub fn settle(&self, claim: Claim, fate: Fate) {
        self.put_back(claim, fate);
        if fate == Fate::Unused {
            self.came.notify_waiters();
        }
    }

    fn put_back(&self, claim: Claim, fate: Fate) {
        let mut state = self.state();
        let before = state.buffer.overflowed();
        state.buffer.settle(claim, fate);
        let full = state.buffer.overflowed() > before;
        let alarm = full && !state.overflowing;
        state.overflowing = full || (state.overflowing && state.buffer.pooled() > 0);
        drop(state);
        if alarm {
            tracing::error!(
                namespace = %self.namespace,
                "the pool of numbers whose insert failed is full: does the database refuse every insert?"
            );
        }
    }

    /// Adds a block. `left` is what is unused of one that was taken over.
    pub fn add(&self, entered: Entered, left: Option<Vec<Span>>) {
        let mut state = self.state();
        match left {
            None => state.buffer.add(entered),
            Some(left) => state.buffer.add_reclaimed(entered, left),
        }
        state.demand.is_met();
        state.exhausted = false;
        drop(state);
        self.came.notify_waiters();
    }

    /// Gives up what is left of a history of the database that has ended.
    pub fn give_up(&self, history: &StoreEpoch) {
        let numbers = self.state().buffer.give_up(history);
        if numbers > 0 {
            tracing::error!(
                namespace = %self.namespace,
                numbers,
                %history,
                "the database has failed over: the numbers in hand are given up"
            );
        }
        self.want();
    }

    /// Notes that the issuer has nothing left, so that creators are told at once.
    pub(super) fn exhaust(&self) {
        self.state().exhausted = true;
        self.came.notify_waiters();
    }

    /// Notes that the issuer has nothing now, but may have later: creators wait.
    pub(super) fn starve(&self) {
        let mut state = self.state();
        state.exhausted = false;
        state.demand.save(Instant::now());
    }

    /// Gives up what is not claimed, because another holder starves, and saves from now on. A holder that starves itself has nothing
    /// to give.
    pub(super) fn relinquish(&self) {
        let mut state = self.state();
        state.demand.save(Instant::now());
        state.buffer.relinquish();
        drop(state);
        self.want();
    }

    /// Refuses every claim from now on.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.came.notify_waiters();
    }

    pub(super) fn wants_block(&self) -> bool {
        self.state().wants_block(self.refill_permille)
    }

    /// Wakes the supplier.
    pub(super) fn want(&self) {
        self.wanted.notify_one();
    }

    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Takes out the blocks that are to go back. Their numbers are this holder's until the issuer has them.
    pub(super) fn take_closed(self: &Arc<Self>) -> Vec<(Closed, OnTheWay)> {
        self.take(Buffer::take_closed)
    }

    /// The same of all blocks, when no claim will come any more.
    pub(super) fn take_all(self: &Arc<Self>) -> Vec<(Closed, OnTheWay)> {
        self.take(Buffer::take_all)
    }

    fn take(self: &Arc<Self>, take: impl FnOnce(&mut Buffer) -> Vec<Closed>) -> Vec<(Closed, OnTheWay)> {
        let mut state = self.state();
        let taken = take(&mut state.buffer).into_iter();
        let counted = taken.map(|closed| {
            let numbers = closed.burned + closed.unused.iter().map(|span| span.len()).sum::<u64>();
            state.returning += numbers;
            (closed, OnTheWay { minting: Arc::clone(self), numbers })
        });
        counted.collect()
    }

    /// Counts the numbers of a block that goes back without having been added here.
    pub(super) fn on_the_way(self: &Arc<Self>, numbers: u64) -> OnTheWay {
        self.state().returning += numbers;
        OnTheWay { minting: Arc::clone(self), numbers }
    }

    /// Numbers of this holder's blocks that are not used, as far as blocks have come here. Burned ones count until the issuer has
    /// heard of them: should this process die before that, they are found unused.
    pub(super) fn unsettled(&self) -> u64 {
        let state = self.state();
        state.buffer.unsettled() + state.returning
    }

    /// Notes how many claims there were until now. To be called about once a second.
    pub fn sample(&self, now: Instant) {
        let mut state = self.state();
        let claims = state.buffer.claims();
        state.rate.sample(now, claims);
    }

    /// How many numbers a block should have to last for ten minutes at the rate of the last minute.
    pub(super) fn wanted_len(&self, now: Instant) -> u64 {
        self.sample(now);
        self.state().rate.claims_in(SUPPLY).clamp(1, Span::LIMIT)
    }

    /// What there is.
    #[must_use]
    pub fn stock(&self) -> Stock {
        let state = self.state();
        let buffer = &state.buffer;
        Stock {
            in_hand: buffer.in_hand(),
            pooled: buffer.pooled(),
            overflowed: buffer.overflowed(),
            rate: state.rate.per_second(),
        }
    }

    /// How many numbers the keyspace has.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
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
        let minting = Arc::new(Minting::new(index, Namespace::new("web").unwrap(), 10, 200));
        let waits = minting.claim(Instant::now() + Duration::from_secs(3_600));
        let closes = async { minting.close() };
        assert_eq!(tokio::join!(waits, closes).0, Err(ClaimError::Closed));
        assert!(!minting.wants_block());
    }
}
