//! The numbers of one keyspace, with the decision when to ask for the next block.
//!
//! Near the end of a number space, a holder that fills its buffer takes numbers from another whose
//! creates wait. Once it hears that one starves, it asks only for its own creates that found no
//! number. So a number that is handed over was wanted at that moment, and holders that starve
//! together do not take the last number from each other without end.

use codes::KeyspaceIndex;
use numbers::{Millis, Namespace, Span};

use crate::buffer::{Buffer, Choice, Claim, Entered};

/// How long a holder stops asking ahead of need after it last heard that a holder starves, in
/// milliseconds.
const LEAN_MS: u64 = 30_000;

/// The identity of a keyspace at the issuer and in the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The keyspace's index in the database.
    pub index: KeyspaceIndex,
    /// The keyspace's namespace at the issuer.
    pub namespace: Namespace,
    /// The count of numbers in the keyspace.
    pub capacity: u64,
}

/// The numbers of one keyspace in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyspaceNumbers {
    /// The numbers of the blocks in hand.
    pub buffer: Buffer,
    /// The time until which this holder asks only on need.
    lean_until: Option<Millis>,
    /// Whether a create found no number since numbers last arrived.
    unmet: bool,
    refill_permille: u64,
    /// Whether the issuer has reported that every number is used. Claims fail once none is in hand
    /// either.
    pub exhausted: bool,
    /// Whether this process mints no more: every claim is refused.
    pub closed: bool,
    /// The count of unused and burned numbers on their way back, until the issuer or another holder
    /// has them.
    pub(crate) returning: u64,
}

/// The keyspaces of one holder, in the order of its specs. Creators share them with the core, so
/// the shell lends them one at a time.
pub trait Keyspaces {
    /// Runs a function with one keyspace, given by its position.
    fn with<T>(&mut self, keyspace: usize, act: impl FnOnce(&mut KeyspaceNumbers) -> T) -> T;
}

impl Keyspaces for Vec<KeyspaceNumbers> {
    fn with<T>(&mut self, keyspace: usize, act: impl FnOnce(&mut KeyspaceNumbers) -> T) -> T {
        act(&mut self[keyspace])
    }
}

/// The reason why a claim got no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// No number arrived before the deadline.
    #[error("no number came in time")]
    TimedOut,
    /// Every number of the keyspace is used.
    #[error("the keyspace is exhausted")]
    Exhausted,
    /// This process mints no more, because its blocks belong to another now.
    #[error("this process mints no more")]
    Closed,
}

impl KeyspaceNumbers {
    /// Creates a keyspace without numbers in hand. `refill_permille` is the used part of a block,
    /// in thousandths, at which the next one is fetched. It differs between resolvers, so that
    /// those started together do not ask together.
    pub fn new(refill_permille: u64) -> Self {
        Self { refill_permille, ..Self::default() }
    }

    /// Claims a number; `None` if none is in hand yet.
    pub fn claim(&mut self) -> Result<Option<Claim>, ClaimError> {
        if self.closed {
            return Err(ClaimError::Closed);
        }
        let claim = self.buffer.claim();
        if claim.is_none() {
            self.unmet = true;
        }
        if claim.is_none() && self.exhausted { Err(ClaimError::Exhausted) } else { Ok(claim) }
    }

    /// Claims a number like [`claim`](Self::claim), of a bucket that the choice wants. Returns
    /// `None` as well if all numbers in hand are those of nodes that are away.
    pub fn claim_of(&mut self, choice: &Choice<'_>) -> Result<Option<Claim>, ClaimError> {
        if self.closed {
            return Err(ClaimError::Closed);
        }
        match self.buffer.claim_of(choice) {
            Some(claim) => Ok(Some(claim)),
            None if self.buffer.in_hand() > 0 => {
                self.unmet = true;
                Ok(None)
            }
            None => self.claim(),
        }
    }

    /// Adds a block. For a block that was taken over, `left` holds its unused ranges.
    pub fn add(&mut self, entered: Entered, left: Option<Vec<Span>>) {
        self.buffer.add(entered, left);
        self.unmet = false;
        self.exhausted = false;
    }

    /// Returns whether to ask for a block. An exhausted keyspace still asks, because numbers may
    /// have come back to the issuer. `now` is called only if the time matters, because every claim
    /// calls this function.
    pub fn wants_block(&self, now: impl FnOnce() -> Millis) -> bool {
        let room = !self.closed && self.buffer.wants_block(self.refill_permille);
        let is_lean = || self.lean_until.is_some_and(|until| now() < until);
        room && (self.exhausted || self.unmet || !is_lean())
    }

    /// Records that the issuer has no number now, but may have some later. Creators keep waiting.
    pub fn starve(&mut self, now: Millis) {
        self.exhausted = false;
        self.lean_until = Some(Millis(now.0 + LEAN_MS));
    }

    /// Gives up unclaimed numbers because another holder starves, and asks only on need for a
    /// while. A holder that starves itself has none to give.
    pub fn relinquish(&mut self, now: Millis) {
        self.lean_until = Some(Millis(now.0 + LEAN_MS));
        self.buffer.relinquish();
    }

    /// Returns the count of numbers in this holder's blocks that are not known to be used. Burned
    /// ones count until the issuer has heard of them: if this process died before that, they would
    /// be found unused.
    pub fn unsettled(&self) -> u64 {
        self.buffer.unsettled() + self.returning
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use numbers::{Block, Generation, StoreEpoch};

    use super::*;
    use crate::EntryId;

    #[test]
    fn a_holder_that_saves_asks_only_for_creates_that_wait_until_it_has_heard_nothing_for_a_while() {
        let (mut keyspace, now) = (KeyspaceNumbers::new(300), Millis(1_000));
        assert!(keyspace.wants_block(|| now), "ahead of need");
        keyspace.relinquish(now);
        assert!(!keyspace.wants_block(|| now));
        assert_eq!(keyspace.claim(), Ok(None));
        assert!(keyspace.wants_block(|| now), "a create waits");
        let (namespace, span) = (Namespace::new("web").unwrap(), Span::new(0, 1).unwrap());
        let block = Block { namespace, span, generation: Generation(1) };
        let history = Arc::new(StoreEpoch::new("7001:1").unwrap());
        keyspace.add(Entered { block, entry: EntryId(1), history }, Some(Vec::new()));
        assert!(!keyspace.wants_block(|| now));
        assert!(keyspace.wants_block(|| Millis(now.0 + LEAN_MS)));
    }
}
