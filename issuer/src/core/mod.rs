//! The issuer's decisions as a pure function: [`Core::step`] takes an event and gives effects.
//!
//! No clock, no task and no store in here: time comes in as a value, a shell runs the effects. The model checker
//! and the simulation run this very code.
//!
//! 1. I1, I2: a block is the front of a free part or of what lies at the high watermark; the watermark moves
//!    forward by the length of the block and never back.
//! 2. I3: answers of a batch leave after its transaction is known to have applied. The state changes in place when
//!    the batch is built; if the transaction turns out not to have applied, the whole term is dropped with its
//!    state, so nothing computed from it can be answered or reused.
//! 3. I4: an unknown outcome is followed by the identical transaction, and by nothing else.
//! 4. I5: an allocation is remembered with its seq in the same transaction that makes it, as an entry of its [`journal`].
//! 5. A leaked block goes to its own holder's next start at once, and to others after a rest. The new holder is told the
//!    generation that it must take over in the database, and asks there which numbers are unused.
//! 6. A number at or above the ceiling that holders were told is allocated to nobody: see [`ceiling`].
//! 7. Near its end a number space is shared out in smaller blocks, and nobody hears "exhausted" while a number may lie unused
//!    in a holder's hand: see [`scarcity`].
//! 8. I10: every change of a number's whereabouts moves a count from one term of the account to another.
//!
//! Rejected: a copy of the state per batch, changed and swapped in after the commit. It costs a copy of every
//! holder, and needs the same rule on failure anyway: the term ends.

mod account;
mod allocate;
mod ceiling;
mod guard;
mod journal;
mod leak;
mod register;
mod request;
mod return_blocks;
mod scarcity;
mod state;
mod status;
mod term;

pub use account::Account;
pub use guard::Guard;
pub use journal::{Entry, Journal};
use numbers::{Epoch, Millis, Ticket};
pub use request::{
    Answer, HolderReport, Leader, NamespaceReport, Refusal, Request, Returned, ReturnedError, StatusReport,
};
pub use scarcity::scarce_beat_ms;
pub use state::{ByStart, Head, HolderRecord, LeakedBlock, NamespaceRecord, OpenBlock, Part, Reply, State};

use crate::ledger::{Snapshot, Txn, TxnOutcome};
use term::Term;

/// The bounds the core keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Shortest block, in numbers, unless fewer are left.
    pub block_min: u64,
    /// Longest block, in numbers.
    pub block_max: u64,
    /// How long a holder may be silent before it counts as gone, in milliseconds.
    pub holder_ttl_ms: u64,
    /// How long a leaked block rests before another holder gets it, in milliseconds.
    pub reclaim_after_ms: u64,
    /// Requests that may wait for the next transaction.
    pub queue: usize,
    /// Blocks that one holder may have open.
    pub open_blocks: usize,
    /// Namespaces in all; `head` lists them and is written by every transaction.
    pub namespaces: usize,
    /// Holders in all.
    pub holders: usize,
    /// A block is at most this part of what one live holder's fair share of the unallocated numbers is: 2 for a half; 0 for no
    /// such bound.
    pub fair_shares: u64,
    /// Least room between the high watermark and a new ceiling, in longest blocks.
    pub headroom_blocks: u64,
    /// Allocations that `head` itself lists before they go to a journal.
    pub journal_recent: usize,
    /// Keys that journals of allocations go to in turn; 0 writes a holder whole with each allocation.
    pub journal_slots: u64,
    /// The most holders that a transaction writes whole only because their entries in journals grow old.
    pub journal_saves: usize,
    /// The guard that a proof has switched off.
    #[cfg(feature = "mutations")]
    pub off: Option<Guard>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            block_min: 1_000,
            block_max: 1_000_000,
            holder_ttl_ms: 30_000,
            reclaim_after_ms: 600_000,
            queue: 4_096,
            open_blocks: 64,
            namespaces: 256,
            holders: 100_000,
            fair_shares: 2,
            headroom_blocks: 4,
            journal_recent: 4,
            journal_slots: 128,
            journal_saves: 16,
            #[cfg(feature = "mutations")]
            off: None,
        }
    }
}

/// What happens to the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This issuer won an election and has read the ledger since.
    Elected {
        /// The epoch it won.
        epoch: Epoch,
        /// The ledger as of one instant after that.
        snapshot: Snapshot,
    },
    /// Leadership is lost, or somebody else has it.
    Following(Option<Leader>),
    /// A call came in.
    Arrived(Ticket, Request),
    /// The transaction in flight ended, or is in doubt.
    Committed(TxnOutcome),
    /// Time has passed: holders may have been silent for too long.
    Tick,
    /// The process stood still for a while: what it heard of holders says nothing any more.
    Woke,
    /// The process is going to stop: take no more requests and hand over.
    Retire,
}

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Answer a caller.
    Answer(Ticket, Result<Answer, Refusal>),
    /// Run a transaction and report its outcome. `again` marks a copy of one whose outcome was unknown: the shell
    /// waits a little before it.
    Commit {
        /// The transaction.
        txn: Txn,
        /// Whether it was sent before.
        again: bool,
    },
    /// Give leadership up: the ledger is in somebody else's hands, or this issuer retires.
    Abdicate,
}

/// Who this issuer is at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    Following(Option<Leader>),
    Leading(Box<Term>),
}

/// The issuer's state machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    limits: Limits,
    role: Role,
}

impl Core {
    /// A follower that knows no leader.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, role: Role::Following(None) }
    }

    /// Takes one event; the effects are to be run in their order.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Elected { epoch, snapshot } => {
                self.follow(None, &mut effects);
                let term = Term::take_over(self.limits, now, epoch, snapshot, &mut effects);
                self.role = Role::Leading(Box::new(term));
            }
            Event::Following(leader) => self.follow(leader, &mut effects),
            Event::Arrived(ticket, request) => match &mut self.role {
                Role::Following(leader) => {
                    effects.push(Effect::Answer(ticket, Err(Refusal::NotLeader(leader.clone()))));
                }
                Role::Leading(term) => term.arrived(now, ticket, request, &mut effects),
            },
            Event::Committed(outcome) => {
                if let Role::Leading(term) = &mut self.role
                    && term.committed(now, outcome, &mut effects).is_deposed()
                {
                    self.follow(None, &mut effects);
                    effects.push(Effect::Abdicate);
                }
            }
            Event::Tick => {
                if let Role::Leading(term) = &mut self.role {
                    term.tick(now, &mut effects);
                }
            }
            Event::Woke => {
                if let Role::Leading(term) = &mut self.role {
                    term.woke(now);
                }
            }
            Event::Retire => {
                if let Role::Leading(term) = &mut self.role {
                    term.retire(&mut effects);
                }
            }
        }
        effects
    }

    /// The epoch of the current term, once its take-over is written; none while following.
    #[must_use]
    pub fn serving(&self) -> Option<Epoch> {
        match &self.role {
            Role::Leading(term) if term.is_serving() => Some(term.epoch()),
            _ => None,
        }
    }

    /// Who leads, as far as this issuer knows; none when it leads itself.
    #[must_use]
    pub fn leader(&self) -> Option<&Leader> {
        match &self.role {
            Role::Following(leader) => leader.as_ref(),
            Role::Leading(_) => None,
        }
    }

    /// Ends a term, if there is one, and follows.
    fn follow(&mut self, leader: Option<Leader>, effects: &mut Vec<Effect>) {
        let role = std::mem::replace(&mut self.role, Role::Following(leader.clone()));
        if let Role::Leading(term) = role {
            term.end(leader.as_ref(), effects);
        }
    }
}

#[cfg(test)]
mod tests;
