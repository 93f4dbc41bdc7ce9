//! The state that the checker walks: issuers with their real cores, one etcd, holders, the network between them.

use issuer::{
    core::{Answer, Core, Effect, Event, Limits, Refusal},
    ledger::{Txn, TxnOutcome},
    tokens::{Epoch, Millis},
};

use super::{
    checks::{History, Seen},
    etcd::{Etcd, Guards},
    holder::{Caller, Held, Holder, Numbers},
    shared::Shared,
};

/// How far a run goes. Every schedule within it is walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) issuers: usize,
    pub(super) holders: u8,
    pub(super) capacity: u64,
    /// Per holder, over all its starts.
    pub(super) allocations: u8,
    pub(super) returns: u8,
    /// In all.
    pub(super) spent: Spent,
}

/// What a schedule has used up of its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Spent {
    pub(super) elections: u8,
    pub(super) restarts: u8,
    /// Holder TTLs that have passed; a leaked block rests for as long.
    pub(super) ttls: u8,
    /// Faults of the network, in any combination.
    pub(super) faults: u8,
    /// Reads at take-over that are out of date.
    pub(super) stale_reads: u8,
}

impl Spent {
    pub(super) fn within(self, bounds: Self) -> bool {
        self.elections <= bounds.elections
            && self.restarts <= bounds.restarts
            && self.ttls <= bounds.ttls
            && self.faults <= bounds.faults
            && self.stale_reads <= bounds.stale_reads
    }
}

/// One issuer. Its core does not know its name, so issuers that follow are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Issuer {
    /// The term it believes to be in.
    pub(super) term: Option<Epoch>,
    pub(super) core: Shared<Core>,
    pub(super) wire: Option<Wire>,
}

/// The transaction that an issuer waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wire {
    pub(super) txn: Shared<Txn>,
    /// What etcd said, once the transaction has got there; the issuer has yet to hear it.
    pub(super) outcome: Option<TxnOutcome>,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) now: Millis,
    /// By term; those that follow come first.
    pub(super) issuers: Vec<Issuer>,
    pub(super) etcd: Etcd,
    /// Copies of transactions that nobody waits for and that may still arrive, or never: a lost one never does.
    pub(super) late: Vec<Shared<Txn>>,
    pub(super) holders: Vec<Holder>,
    /// The database: numbers with a link.
    pub(super) rows: Numbers,
    pub(super) spent: Spent,
    pub(super) history: History,
    /// What the last action has shown.
    pub(super) seen: Seen,
}

impl World {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let limits = Limits {
            block_min: 2,
            block_max: 2,
            // A clock that counts in holder TTLs.
            holder_ttl_ms: 1,
            reclaim_after_ms: 1,
            ..Limits::default()
        };
        let issuer = Issuer { term: None, core: Shared::new(Core::new(limits)), wire: None };
        Self {
            now: Millis(0),
            issuers: vec![issuer; bounds.issuers],
            etcd: Etcd::empty(),
            late: Vec::new(),
            holders: (0..bounds.holders).map(Holder::new).collect(),
            rows: Numbers::default(),
            spent: Spent::default(),
            history: History::default(),
            seen: Seen::default(),
        }
    }

    /// The issuer that believes to be in this term.
    pub(super) fn in_term(&self, epoch: Epoch) -> Option<usize> {
        self.issuers.iter().position(|issuer| issuer.term == Some(epoch))
    }

    /// Gives an event to a core and carries out what it wants.
    pub(super) fn step(&mut self, index: usize, event: Event) {
        let mut core = self.issuers[index].core.to_value();
        let effects = core.step(self.now, event);
        self.issuers[index].core = Shared::new(core);
        for effect in effects {
            match effect {
                Effect::Answer(ticket, answer) => self.answer(Caller::from_ticket(ticket), &answer),
                Effect::Commit { txn, .. } => {
                    assert!(self.issuers[index].wire.is_none(), "one transaction in flight");
                    self.issuers[index].wire = Some(Wire { txn: Shared::new(txn), outcome: None });
                }
                Effect::Abdicate => self.step_down(index),
            }
        }
    }

    /// The driver drops the commit of a term that ended; a copy that is on its way stays so.
    pub(super) fn drop_wire(&mut self, index: usize) {
        if let Some(Wire { txn, outcome: None }) = self.issuers[index].wire.take() {
            self.delay(txn);
        }
    }

    /// A copy stays in the network.
    pub(super) fn delay(&mut self, txn: Shared<Txn>) {
        if !self.late.contains(&txn) {
            self.late.push(txn);
            self.late.sort_by_key(|txn| (txn.epoch, txn.batch));
        }
    }

    fn step_down(&mut self, index: usize) {
        self.drop_wire(index);
        if self.etcd.leader == self.issuers[index].term {
            self.etcd.leader = None;
        }
        self.issuers[index].term = None;
    }

    /// The transaction gets to etcd; the checkers look at what it does there.
    pub(super) fn arrive_at_etcd(&mut self, txn: &Txn, guards: Guards) -> TxnOutcome {
        let (leader, before) = (self.etcd.leader, self.etcd.records.clone());
        let outcome = self.etcd.apply(txn, guards);
        if matches!(outcome, TxnOutcome::Applied(_)) {
            self.history.committed(&mut self.seen, &before, &self.etcd.records, txn);
            self.seen.fenced &= leader == Some(txn.epoch);
            self.seen.account(&self.etcd.records, self.rows);
            self.see_take_over(&before, txn);
        }
        outcome
    }

    fn see_take_over(&mut self, before: &super::etcd::Records, txn: &Txn) {
        let earlier = |epoch: Epoch| epoch < txn.epoch;
        let take_over = super::etcd::head_of(before).is_some_and(|head| earlier(head.epoch));
        let waits = |issuer: &Issuer| issuer.wire.is_some() && issuer.term.is_some_and(earlier);
        let in_doubt = self.issuers.iter().any(waits) || self.late.iter().any(|copy| earlier(copy.epoch));
        self.seen.take_over_in_doubt |= take_over && in_doubt;
    }

    fn answer(&mut self, caller: Caller, answer: &Result<Answer, Refusal>) {
        self.history.answered(&mut self.seen, caller, answer);
        let holder = &mut self.holders[usize::from(caller.holder)];
        if !caller.patient || !holder.waiting || holder.start != caller.start {
            return;
        }
        if let Some(held) = holder.hear(answer) {
            self.mint(&held);
        }
    }

    /// The holder stores links under the first half of its block, at once; of a leaked block it asks the database first.
    fn mint(&mut self, held: &Held) {
        let block = Numbers::of(held.block.span);
        self.seen.minted_once &= held.leaked.is_some() || !block.meets(self.rows);
        let unused = block.without(self.rows);
        let half = usize::try_from(unused.count().div_ceil(2)).expect("blocks are short");
        for n in unused.iter().take(half) {
            self.rows.insert(n);
        }
    }

    /// Makes worlds that differ only in names that nobody knows the same.
    pub(super) fn normalize(&mut self, bounds: &Bounds) {
        self.issuers.sort_by_key(|issuer| issuer.term);
        if self.spent.stale_reads >= bounds.spent.stale_reads {
            self.etcd.forget_the_past();
        }
        if self.spent.faults >= bounds.spent.faults {
            for holder in &mut self.holders {
                holder.past = None;
            }
        }
        self.seen.overlap_free = self.history.overlap_free(&self.holders);
    }
}
