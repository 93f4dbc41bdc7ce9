//! The issuer's decisions as a pure function: [`Core::step`] takes an event and returns effects.
//!
//! The core has no clock, no tasks and no store: time comes in as a value, and a shell runs the
//! effects. The model checker and the simulation run this same code.
//!
//! 1. I1, I2: a block is a whole leaked block, the front of a free part, or the front of the
//!    numbers at the high watermark. The watermark moves forward by the length of the block and
//!    never back.
//! 2. I3: the answers of a batch leave after its transaction is known to have applied. Building a
//!    batch changes the state in place. If the transaction turns out not to have applied, the whole
//!    term is dropped with its state, so nothing computed from it can be answered or reused.
//! 3. I4: a transaction with an unknown outcome is followed by the identical transaction, and by
//!    nothing else.
//! 4. I5: the transaction that makes an allocation also records its seq, as an entry of its
//!    [`journal`].
//! 5. A leaked block goes to the next start of its own holder at once, and to other holders after
//!    `reclaim_after_ms`. The new holder is told the generation that the block was leaked under. It
//!    takes the block over from that generation in the database, and asks there which numbers are
//!    unused.
//! 6. A number at or above the ceiling that holders were told is allocated to no holder: see
//!    [`ceiling`].
//! 7. Near its end a namespace is shared out in smaller blocks. No holder is told "exhausted" while
//!    another holder's block may have an unused number: see [`scarcity`].
//! 8. I10: every change of a number's state moves a count from one term of the account to another.
//!
//! Rejected: a copy of the state per batch, changed and swapped in after the commit. It costs a
//! copy of every holder, and needs the same rule on failure anyway: the term ends.

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

/// Limits of the core: sizes, timeouts and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Minimum length of a block, in numbers. A block is shorter if fewer numbers are left.
    pub block_min: u64,
    /// Maximum length of a block, in numbers.
    pub block_max: u64,
    /// Silence after which a holder counts as gone, in milliseconds.
    pub holder_ttl_ms: u64,
    /// Time that a leaked block rests before another holder may get it, in milliseconds.
    pub reclaim_after_ms: u64,
    /// Maximum number of requests that wait for the next transaction.
    pub queue: usize,
    /// Maximum number of open blocks per holder.
    pub open_blocks: usize,
    /// Maximum number of namespaces. `head` lists them all, and every transaction writes `head`.
    pub namespaces: usize,
    /// Maximum number of holders.
    pub holders: usize,
    /// Divisor of a fair share: a block has at most the unallocated numbers divided by the live
    /// holders and by this. 2 means half of a fair share; 0 means no such limit.
    pub fair_shares: u64,
    /// Minimum headroom between the high watermark and a new ceiling, in blocks of `block_max`
    /// numbers.
    pub headroom_blocks: u64,
    /// Maximum number of allocations that `head` lists; more go to a journal.
    pub journal_recent: usize,
    /// Number of keys that journals are written to in rotation. With 0 there are no journals, and
    /// each allocation writes its holder's whole record.
    pub journal_slots: u64,
    /// Maximum number of holders per transaction that are written whole only because their journal
    /// entries grow old.
    pub journal_saves: usize,
    /// Guard that a proof has switched off.
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

/// An input of the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This issuer won an election, and has read the ledger since then.
    Elected {
        /// Epoch of the new term.
        epoch: Epoch,
        /// Consistent snapshot of the ledger, read after the election.
        snapshot: Snapshot,
    },
    /// This issuer does not lead. Another one may lead, and is named if it is known.
    Following(Option<Leader>),
    /// A call arrived. Its answer carries the same ticket.
    Arrived(Ticket, Request),
    /// The transaction in flight has ended, or its outcome is unknown.
    Committed(TxnOutcome),
    /// Time has passed, so holders may have been silent for longer than the holder TTL.
    Tick,
    /// The process was suspended for a while. Its record of when holders were last heard is void,
    /// so every holder gets a full TTL again.
    Woke,
    /// The process is about to stop: refuse new requests, finish the transaction in flight, then
    /// abdicate.
    Retire,
}

/// An action for the shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send the answer to a caller.
    Answer(Ticket, Result<Answer, Refusal>),
    /// Run a transaction and report its outcome with [`Event::Committed`].
    Commit {
        /// Transaction to run.
        txn: Txn,
        /// Whether this repeats a transaction with an unknown outcome. The shell backs off before
        /// it sends one again.
        again: bool,
    },
    /// Give up leadership: another leader has written the ledger, or this issuer is retiring.
    Abdicate,
}

/// Current role of this issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    Following(Option<Leader>),
    Leading(Box<Term>),
}

/// The issuer's state machine: a follower, or the leader of one term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    limits: Limits,
    role: Role,
}

impl Core {
    /// Creates the core of a follower that knows no leader.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, role: Role::Following(None) }
    }

    /// Handles one event. The shell must run the returned effects in their order.
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

    /// Returns the epoch of the current term once its take-over has committed. Returns `None`
    /// before that, and while following.
    #[must_use]
    pub fn serving(&self) -> Option<Epoch> {
        match &self.role {
            Role::Leading(term) if term.is_serving() => Some(term.epoch()),
            _ => None,
        }
    }

    /// Returns the current leader if it is known. Returns `None` if this issuer leads itself.
    #[must_use]
    pub fn leader(&self) -> Option<&Leader> {
        match &self.role {
            Role::Following(leader) => leader.as_ref(),
            Role::Leading(_) => None,
        }
    }

    /// Ends the current term, if any, and becomes a follower.
    fn follow(&mut self, leader: Option<Leader>, effects: &mut Vec<Effect>) {
        let role = std::mem::replace(&mut self.role, Role::Following(leader.clone()));
        if let Role::Leading(term) = role {
            term.end(leader.as_ref(), effects);
        }
    }
}

#[cfg(test)]
mod tests;
