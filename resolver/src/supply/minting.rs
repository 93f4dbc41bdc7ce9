//! Creators claim numbers here, and wait when there are none.

use std::sync::{Mutex, MutexGuard};

use issuer::{
    block::{Block, Span},
    names::Namespace,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::buffer::{Buffer, Claim, Closed, Fate};
use crate::codes::KeyspaceIndex;

/// One keyspace's numbers, shared by creators and the supplier.
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

#[derive(Default)]
struct State {
    buffer: Buffer,
    exhausted: bool,
}

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The issuer did not deliver in time.
    #[error("no number came in time")]
    TimedOut,
    /// All numbers of the keyspace are allocated.
    #[error("the keyspace is exhausted")]
    Exhausted,
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

    fn try_claim(&self) -> Result<Option<Claim>, ClaimError> {
        let mut state = self.state();
        let claim = state.buffer.claim();
        if state.buffer.wants_block(self.refill_permille) {
            self.wanted.notify_one();
        }
        if claim.is_none() && state.exhausted { Err(ClaimError::Exhausted) } else { Ok(claim) }
    }

    /// Takes a claim back.
    pub fn settle(&self, claim: Claim, fate: Fate) {
        self.state().buffer.settle(claim, fate);
        if fate == Fate::Unused {
            self.came.notify_waiters();
        }
    }

    /// Adds a block. `left` is what is unused of one that was taken over.
    pub fn add(&self, block: Block, left: Option<Vec<Span>>) {
        let mut state = self.state();
        match left {
            None => state.buffer.add(block),
            Some(left) => state.buffer.add_reclaimed(block, left),
        }
        state.exhausted = false;
        drop(state);
        self.came.notify_waiters();
    }

    /// Notes that the issuer has nothing left, so that creators are told at once.
    pub(super) fn exhaust(&self) {
        self.state().exhausted = true;
        self.came.notify_waiters();
    }

    pub(super) fn wants_block(&self) -> bool {
        self.state().buffer.wants_block(self.refill_permille)
    }

    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    pub(super) fn take_closed(&self) -> Vec<Closed> {
        self.state().buffer.take_closed()
    }

    pub(super) fn take_all(&self) -> Vec<Closed> {
        self.state().buffer.take_all()
    }

    /// Claims ever made.
    pub(super) fn claims(&self) -> u64 {
        self.state().buffer.claims()
    }

    /// Numbers that can be claimed at once.
    #[must_use]
    pub fn in_hand(&self) -> u64 {
        self.state().buffer.in_hand()
    }

    /// How many numbers the keyspace has.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}
