//! The numbers of one keyspace, with what decides when to ask for the next block.

use codes::KeyspaceIndex;
use numbers::{Millis, Namespace, Span, StoreEpoch};

use crate::{
    buffer::{Buffer, Claim, Closed, Entered, Fate},
    demand::Demand,
};

/// What a keyspace is to the issuer and to the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Its index in the database.
    pub index: KeyspaceIndex,
    /// Its namespace at the issuer.
    pub namespace: Namespace,
    /// How many numbers it has.
    pub capacity: u64,
}

/// The numbers of one keyspace in hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keyspace {
    buffer: Buffer,
    demand: Demand,
    /// How much of a block is used when the next one is fetched, in thousandths. Resolvers differ in
    /// it, so that those started together do not ask together.
    refill_permille: u64,
    /// Whether the issuer has said that every number is used.
    exhausted: bool,
    /// Whether this process mints no more.
    closed: bool,
    /// Unused and burned numbers on their way back to the issuer.
    returning: u64,
}

/// The keyspaces of one holder, in the order of [`Core`](crate::Core)'s specs. Creators share them
/// with the core, so the shell lends them one at a time.
pub trait Keyspaces {
    /// Runs something with one of them.
    fn with<T>(&mut self, keyspace: usize, act: impl FnOnce(&mut Keyspace) -> T) -> T;
}

impl Keyspaces for [Keyspace] {
    fn with<T>(&mut self, keyspace: usize, act: impl FnOnce(&mut Keyspace) -> T) -> T {
        act(&mut self[keyspace])
    }
}

impl Keyspaces for Vec<Keyspace> {
    fn with<T>(&mut self, keyspace: usize, act: impl FnOnce(&mut Keyspace) -> T) -> T {
        act(&mut self[keyspace])
    }
}

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

impl Keyspace {
    /// A keyspace with no number in hand.
    #[must_use]
    pub fn new(refill_permille: u64) -> Self {
        Self {
            buffer: Buffer::default(),
            demand: Demand::default(),
            refill_permille,
            exhausted: false,
            closed: false,
            returning: 0,
        }
    }

    /// Claims a number; `None` if none is in hand yet.
    ///
    /// # Errors
    /// When there are none left, or this process mints no more.
    pub fn claim(&mut self) -> Result<Option<Claim>, ClaimError> {
        if self.closed {
            return Err(ClaimError::Closed);
        }
        let claim = self.buffer.claim();
        if claim.is_none() {
            self.demand.note_unmet();
        }
        if claim.is_none() && self.exhausted { Err(ClaimError::Exhausted) } else { Ok(claim) }
    }

    /// Takes a claim back.
    pub fn settle(&mut self, claim: Claim, fate: Fate) {
        self.buffer.settle(claim, fate);
    }

    /// Adds a block. `left` is what is unused of one that was taken over.
    pub fn add(&mut self, entered: Entered, left: Option<Vec<Span>>) {
        match left {
            None => self.buffer.add(entered),
            Some(left) => self.buffer.add_reclaimed(entered, left),
        }
        self.demand.note_met();
        self.exhausted = false;
    }

    /// Gives up what is left of a history of the database that has ended; returns how many numbers
    /// that is.
    pub fn give_up(&mut self, history: &StoreEpoch) -> u64 {
        self.buffer.give_up(history)
    }

    /// Whether to ask for a block. An exhausted keyspace is asked about in any case: its numbers may
    /// have come back. The time is read only if it matters: each claim asks here.
    #[must_use]
    pub fn wants_block(&self, now: impl FnOnce() -> Millis) -> bool {
        let room = !self.closed && self.buffer.wants_block(self.refill_permille);
        room && (self.exhausted || self.demand.asks(now))
    }

    /// Notes that the issuer has nothing left: creators are told.
    pub fn exhaust(&mut self) {
        self.exhausted = true;
    }

    /// Notes that the issuer has nothing now, but may have later: creators wait.
    pub fn starve(&mut self, now: Millis) {
        self.exhausted = false;
        self.demand.save(now);
    }

    /// Gives up what is not claimed, because another holder starves, and saves from now on. A holder
    /// that starves itself has nothing to give.
    pub fn relinquish(&mut self, now: Millis) {
        self.demand.save(now);
        self.buffer.relinquish();
    }

    /// Refuses every claim from now on.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Takes out the blocks that are to go back. Their numbers count as this holder's until
    /// [`Keyspace::has_left`].
    pub fn take_closed(&mut self) -> Vec<Closed> {
        let closed = self.buffer.take_closed();
        self.leaves_all(closed)
    }

    /// Does the same with all blocks, when no claim will come any more.
    pub fn take_all(&mut self) -> Vec<Closed> {
        let closed = self.buffer.take_all();
        self.leaves_all(closed)
    }

    fn leaves_all(&mut self, closed: Vec<Closed>) -> Vec<Closed> {
        closed.iter().for_each(|closed| self.leaves(closed.unsettled()));
        closed
    }

    /// Counts numbers of a block that goes back.
    pub fn leaves(&mut self, numbers: u64) {
        self.returning += numbers;
    }

    /// Counts them no more: the issuer has them, or another holder.
    pub fn has_left(&mut self, numbers: u64) {
        self.returning -= numbers;
    }

    /// Returns how many numbers of this holder's blocks are not used. Burned ones count until the
    /// issuer has heard of them: should this process die before that, they are found unused.
    #[must_use]
    pub fn unsettled(&self) -> u64 {
        self.buffer.unsettled() + self.returning
    }

    /// Returns those of them that are in the buffer.
    #[must_use]
    pub fn unsettled_here(&self) -> u64 {
        self.buffer.unsettled()
    }

    /// Whether the issuer has said that every number is used.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns the numbers in hand.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}
