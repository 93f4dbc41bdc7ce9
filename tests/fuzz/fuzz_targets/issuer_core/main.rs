//! The issuer's core under arbitrary events: two issuers, one ledger, three holders.
//!
//! The input is a program of two-character commands. The first character is the command, the second
//! one its argument; `Script` has the table. So a corpus is readable text, and every byte means
//! something.
//!
//! The ledger enforces what etcd does: a transaction applies only if it has the epoch of the leader
//! and the revision of `head`. Replies may be lost, transactions may arrive late, snapshots may be
//! stale, leaders may be deposed without noticing, and holders may start again, repeat calls, skip
//! seqs, fall silent and change their database history. After every transaction the ledger is read
//! as a new leader would read it:
//!
//! - I1: no number is in two open, free or leaked ranges, and none lies at or above the high
//!   watermark.
//! - I2: no high watermark, ceiling or capacity decreases; used and burned counts do not either.
//! - I3: a block is answered only after it was committed.
//! - I5: one `(holder, incarnation, seq)` gets one block, and no two of them get the same one.
//! - I10: each account balances, and equals a count of the records.
//!
//! A reservation loses no block by silence, and gets only numbers that are surely unused, and no
//! more than it asks for.
//!
//! In addition, each call is answered at most once, a transaction writes each key once, `head`
//! first, and no more keys than etcd takes, and the status that a leader reports is what the ledger
//! has.
#![no_main]

mod ledger;
mod script;

use std::collections::{BTreeMap, BTreeSet};

use issuer::core::{
    Answer, Core, Effect, Event, Key, Limits, MAX_TXN_WRITES, NamespaceRecord, Record, Refusal, Request,
    Returned, Snapshot, Txn, TxnOutcome, Write,
};
use ledger::Ledger;
use libfuzzer_sys::fuzz_target;
use numbers::{
    Block, Generation, HolderId, Incarnation, Instance, Mark, Millis, Namespace, Seq, Span, StoreEpoch,
    Ticket,
};
use script::Script;

const ISSUERS: usize = 2;
const HOLDERS: [&str; 3] = ["a", "b", "reservation-c"];
const NAMESPACES: [&str; 2] = ["web", "mobile"];
const STORES: [&str; 2] = ["7001:1", "7001:2"];
/// The maximum number of commands, so that a run takes less than a millisecond.
const STEPS_MAX: usize = 250;
/// How many transactions may still be on their way to the ledger.
const LATE_MAX: usize = 4;

fuzz_target!(|data: &[u8]| {
    let mut world = World::new(limits(data.first().copied().unwrap_or_default()));
    for command in data.get(1..).unwrap_or_default().as_chunks::<2>().0.iter().take(STEPS_MAX) {
        world.run(Script::of(*command));
    }
    world.finish();
});

/// Small limits, so that every one of them is reached. The first byte varies those of blocks and of
/// the journal.
fn limits(byte: u8) -> Limits {
    let (small, journal) = (u64::from(byte & 3), u64::from(byte >> 2 & 3));
    Limits {
        block_min: 1 + small,
        block_max: 4 + 4 * small,
        holder_ttl_ms: 90,
        reclaim_after_ms: 300,
        queue: 6,
        open_blocks: 4,
        namespaces: NAMESPACES.len(),
        holders: HOLDERS.len(),
        fair_shares: u64::from(byte >> 4 & 3),
        journal_recent: usize::from(byte >> 6),
        journal_slots: journal,
        journal_saves: 1,
        ..Limits::default()
    }
}

/// An issuer: its core, and the transaction whose outcome it waits for.
struct Issuer {
    core: Core,
    in_flight: Option<Txn>,
    waiting: BTreeMap<Ticket, Request>,
    is_retired: bool,
}

/// A holder, as far as it knows its own state.
#[derive(Clone, Debug)]
struct Holder {
    id: HolderId,
    incarnation: Incarnation,
    last_seq: Seq,
    blocks: Vec<Block>,
    store: usize,
}

/// A request for a block.
type Asked = (HolderId, Incarnation, Seq);

struct World {
    limits: Limits,
    now: Millis,
    ledger: Ledger,
    earlier: Snapshot,
    late: Vec<Txn>,
    issuers: [Issuer; ISSUERS],
    holders: Vec<Holder>,
    next_ticket: Ticket,
    answered: BTreeSet<Ticket>,
    replies: BTreeMap<Asked, Block>,
    owners: BTreeMap<Generation, Asked>,
    is_finished: bool,
}

impl World {
    fn new(limits: Limits) -> Self {
        let issuer = || Issuer {
            core: Core::new(limits),
            in_flight: None,
            waiting: BTreeMap::new(),
            is_retired: false,
        };
        let holder = |id: &str| Holder {
            id: HolderId::new(id).expect("a valid id"),
            incarnation: Incarnation(1),
            last_seq: Seq(0),
            blocks: Vec::new(),
            store: 0,
        };
        let mut world = Self {
            limits,
            now: Millis(0),
            ledger: Ledger::default(),
            earlier: Snapshot::default(),
            late: Vec::new(),
            issuers: std::array::from_fn(|_| issuer()),
            holders: HOLDERS.iter().map(|id| holder(id)).collect(),
            next_ticket: Ticket(0),
            answered: BTreeSet::new(),
            replies: BTreeMap::new(),
            owners: BTreeMap::new(),
            is_finished: false,
        };
        world.elect(0, world.ledger.snapshot());
        world.settle(0, Outcome::Told);
        world
    }

    fn run(&mut self, (command, argument): (Script, usize)) {
        let issuer = argument % ISSUERS;
        match command {
            Script::Register => self.register(argument),
            Script::Allocate => self.allocate(argument, 0),
            Script::AllocateOddly => self.allocate(argument, 1 + argument / 12 % 3),
            Script::Beat => self.beat(argument),
            Script::Return => self.give_back(argument, None),
            Script::ReturnPast => self.give_back(argument, Some(argument as u64)),
            Script::Status => self.call(argument % ISSUERS, Request::Status),
            Script::Tick => {
                self.now = Millis(self.now.0 + 10 * argument as u64);
                (0..ISSUERS).for_each(|issuer| self.step(issuer, Event::Tick));
            }
            Script::Commit => self.settle(issuer, Outcome::Told),
            Script::LoseReply => self.settle(issuer, Outcome::ReplyLost),
            Script::LoseTxn => self.settle(issuer, Outcome::Lost),
            Script::Delay => self.settle(issuer, Outcome::Late),
            Script::Arrive => {
                if !self.late.is_empty() {
                    let txn = self.late.remove(argument % self.late.len());
                    self.ledger.apply(&txn, &self.limits);
                }
            }
            Script::Elect => self.elect(issuer, self.ledger.snapshot()),
            Script::ElectStale => self.elect(issuer, self.earlier.clone()),
            Script::Follow => {
                self.issuers[issuer].in_flight = None;
                self.step(issuer, Event::Following(None));
            }
            Script::Wake => self.step(issuer, Event::Woke),
            Script::Retire => {
                self.issuers[issuer].is_retired = true;
                self.step(issuer, Event::Retire);
            }
            Script::ChangeStore => {
                let holder = &mut self.holders[argument % HOLDERS.len()];
                holder.store = (holder.store + 1) % STORES.len();
            }
            Script::Remember => self.earlier = self.ledger.snapshot(),
        }
    }

    /// Lets the current leader finish what it has begun, and a new one take over.
    fn finish(&mut self) {
        for issuer in 0..ISSUERS {
            while self.issuers[issuer].in_flight.is_some() {
                self.settle(issuer, Outcome::Told);
            }
        }
        self.elect(0, self.ledger.snapshot());
        while self.issuers[0].in_flight.is_some() {
            self.settle(0, Outcome::Told);
        }
        assert_eq!(self.issuers[0].core.serving(), Some(self.ledger.leader));
        self.is_finished = true;
        self.call(0, Request::Status);
        assert!(
            self.answered.contains(&self.next_ticket),
            "a status is answered at once if nothing is in flight"
        );
    }

    /// Makes an issuer the leader. An issuer that was asked to stop is started again instead.
    fn elect(&mut self, issuer: usize, snapshot: Snapshot) {
        let elected = &mut self.issuers[issuer];
        if std::mem::take(&mut elected.is_retired) {
            (elected.core, elected.waiting) = (Core::new(self.limits), BTreeMap::new());
        }
        elected.in_flight = None;
        self.ledger.leader = self.ledger.leader.next();
        let epoch = self.ledger.leader;
        self.step(issuer, Event::Elected { epoch, snapshot });
    }

    fn register(&mut self, argument: usize) {
        let holder = &mut self.holders[argument % HOLDERS.len()];
        let start = argument / HOLDERS.len() % 2;
        // Sixteen to sixty-four numbers, so that namespaces are used up.
        let capacity = 16 << (argument / 6 % 3);
        let id = holder.id.clone();
        let request = Request::Register {
            reserved: id.is_reservation() && argument % 5 != 0,
            holder: id,
            instance: Instance::new(format!("start-{start}")).expect("a valid instance"),
            namespaces: NAMESPACES.map(|name| (namespace(name), capacity)).into(),
        };
        self.call_leader(request);
    }

    /// Asks for a block. `oddly` is 0 for a correct call, and otherwise chooses what is wrong with
    /// it.
    fn allocate(&mut self, argument: usize, oddly: usize) {
        let holder = &self.holders[argument % HOLDERS.len()];
        let seq = match oddly {
            0 => holder.last_seq.next(),
            1 => Seq(holder.last_seq.0.max(1)),
            2 => Seq(holder.last_seq.0 + 2),
            _ => Seq(1),
        };
        let incarnation = if oddly == 3 { holder.incarnation.next() } else { holder.incarnation };
        let request = Request::Allocate {
            holder: holder.id.clone(),
            incarnation,
            seq,
            namespace: namespace(NAMESPACES[argument / 3 % 2]),
            wanted_len: 1 + (argument / 6 % 8) as u64,
            store: StoreEpoch::new(STORES[holder.store]).expect("a valid history"),
        };
        self.call_leader(request);
    }

    fn beat(&mut self, argument: usize) {
        let holder = &self.holders[argument % HOLDERS.len()];
        let in_hand = (argument / 3 % 3) as u64;
        let request = Request::KeepAlive {
            holder: holder.id.clone(),
            incarnation: holder.incarnation,
            last_seq: if argument % 2 == 0 { holder.last_seq } else { Seq(0) },
            progress: NAMESPACES.map(|name| (namespace(name), in_hand)).into(),
            mark: Mark(self.now.0 / 50),
        };
        self.call_leader(request);
    }

    fn give_back(&mut self, argument: usize, past: Option<u64>) {
        let holder = &self.holders[argument % HOLDERS.len()];
        let Some(block) = holder.blocks.get(argument / 3 % holder.blocks.len().max(1)).cloned() else {
            return;
        };
        let len = block.span.len();
        let used = (argument / 6) as u64 % (len + 1);
        let burned = (argument / 12) as u64 % (len - used + 1);
        // The unused numbers are behind the used and burned ones, with a gap if there is room for
        // one.
        let start = block.span.start() + used + burned;
        let left = len - used - burned;
        let (front, back) = (left / 2, left - left / 2);
        let ends = [(start, front), (start + front, back)];
        let unused: Vec<Span> = ends.iter().filter_map(|(start, len)| Span::new(*start, *len).ok()).collect();
        let registered_end = past.map(|past| (block.span.end() + past).min(Span::LIMIT));
        let returned = Returned { block, used, burned, unused, registered_end };
        assert_eq!(returned.check(), Ok(()));
        let (id, incarnation) = (holder.id.clone(), holder.incarnation);
        self.call_leader(Request::Return { holder: id, incarnation, blocks: vec![returned] });
    }

    /// Sends a call to the issuer that serves, or to each if none or both believe that they do.
    fn call_leader(&mut self, request: Request) {
        let serves = |issuer: &usize| self.issuers[*issuer].core.serving().is_some();
        let serving: Vec<usize> = (0..ISSUERS).filter(serves).collect();
        for issuer in if serving.is_empty() { (0..ISSUERS).collect() } else { serving } {
            self.call(issuer, request.clone());
        }
    }

    fn call(&mut self, issuer: usize, request: Request) {
        self.next_ticket = self.next_ticket.next();
        self.issuers[issuer].waiting.insert(self.next_ticket, request.clone());
        self.step(issuer, Event::Arrived(self.next_ticket, request));
    }

    fn step(&mut self, issuer: usize, event: Event) {
        for effect in self.issuers[issuer].core.step(self.now, event) {
            match effect {
                Effect::Answer(ticket, answer) => self.answer(issuer, ticket, answer),
                Effect::Commit { txn, again } => {
                    check_txn(&txn);
                    let before = self.issuers[issuer].in_flight.replace(txn.clone());
                    let expected = again.then_some(&txn);
                    assert_eq!(
                        before.as_ref(),
                        expected,
                        "one transaction at a time, and the same one again"
                    );
                }
                // An issuer that abdicates resigns: the next leader has another epoch.
                Effect::Abdicate => {}
            }
        }
    }

    /// Ends the transaction of an issuer, if it has one.
    fn settle(&mut self, issuer: usize, outcome: Outcome) {
        let Some(txn) = self.issuers[issuer].in_flight.clone() else { return };
        let told = match outcome {
            Outcome::Told | Outcome::ReplyLost => {
                let applied = self.ledger.apply(&txn, &self.limits);
                if outcome == Outcome::Told { applied } else { TxnOutcome::Unknown }
            }
            Outcome::Lost => TxnOutcome::Unknown,
            Outcome::Late => {
                self.late.push(txn);
                if self.late.len() > LATE_MAX {
                    self.late.remove(0);
                }
                TxnOutcome::Unknown
            }
        };
        if told != TxnOutcome::Unknown {
            self.issuers[issuer].in_flight = None;
        }
        self.step(issuer, Event::Committed(told));
    }

    fn answer(&mut self, issuer: usize, ticket: Ticket, answer: Result<Answer, Refusal>) {
        assert!(self.answered.insert(ticket), "{ticket} is answered twice");
        let request = self.issuers[issuer].waiting.remove(&ticket).expect("only calls are answered");
        match (request, answer) {
            (Request::Register { holder, .. }, Ok(Answer::Registered { incarnation, last_seq, .. })) => {
                let known = self.holder(&holder);
                if incarnation > known.incarnation {
                    known.blocks.clear();
                }
                if incarnation >= known.incarnation {
                    (known.incarnation, known.last_seq) = (incarnation, last_seq);
                }
            }
            (
                Request::Allocate { holder, incarnation, seq, namespace, wanted_len, .. },
                Ok(Answer::Allocated { block, leaked, is_repeated, .. }),
            ) => {
                assert_eq!(block.namespace, namespace);
                let is_reserved = self.ledger.is_reserved(&holder, incarnation);
                // A call that is repeated with another length gets the block of the first one.
                let is_as_asked = leaked.is_none() && (is_repeated || block.span.len() <= wanted_len);
                assert!(!is_reserved || is_as_asked, "{holder} got {block:?}, leaked under {leaked:?}");
                self.allocated((holder, incarnation, seq), block);
            }
            (Request::Return { holder, blocks, .. }, Ok(Answer::Closed { .. })) => {
                let known = self.holder(&holder);
                known.blocks.retain(|block| blocks.iter().all(|returned| returned.block != *block));
            }
            (Request::Allocate { holder, incarnation, .. }, Err(Refusal::Seq { expected, .. })) => {
                let known = self.holder(&holder);
                if known.incarnation == incarnation && expected > known.last_seq.next() {
                    // Another answer got lost, so the holder goes on with the seq that is expected.
                    known.last_seq = Seq(expected.0 - 1);
                }
            }
            (Request::Status, Ok(Answer::Status(report))) => {
                assert!(report.namespaces.iter().all(|one| one.record.account.balances()), "I10: {report:?}");
                if self.is_finished {
                    let head = self.ledger.head().expect("the take-over has written it");
                    let numbers = |name, one: &NamespaceRecord| (name, one.account, one.high_watermark);
                    let reported = report.namespaces.iter().map(|one| numbers(&one.name, &one.record));
                    assert!(reported.eq(head.namespaces.iter().map(|(name, one)| numbers(name, one))));
                }
            }
            _ => {}
        }
    }

    fn holder(&mut self, id: &HolderId) -> &mut Holder {
        self.holders.iter_mut().find(|holder| holder.id == *id).expect("only these holders call")
    }

    /// Checks an answered block: I3 and I5.
    fn allocated(&mut self, asked: Asked, block: Block) {
        self.ledger.check_committed(&block);
        let before = self.replies.entry(asked.clone()).or_insert_with(|| block.clone());
        assert_eq!(*before, block, "I5: {asked:?} got two blocks");
        let owner = self.owners.entry(block.generation).or_insert_with(|| asked.clone());
        assert_eq!(*owner, asked, "I5: {block:?} went to two requests");
        let (id, incarnation, seq) = asked;
        let known = self.holder(&id);
        if known.incarnation == incarnation && seq > known.last_seq {
            known.last_seq = seq;
            known.blocks.push(block);
        }
    }
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Told,
    ReplyLost,
    Lost,
    Late,
}

fn namespace(name: &str) -> Namespace {
    Namespace::new(name).expect("a valid name")
}

fn check_txn(txn: &Txn) {
    assert!((1..=MAX_TXN_WRITES).contains(&txn.writes.len()));
    let key = |write: &Write| match write {
        Write::Put(record) => record.key(),
        Write::Delete(key) => key.clone(),
    };
    let keys: BTreeSet<Key> = txn.writes.iter().map(key).collect();
    assert_eq!(keys.len(), txn.writes.len(), "each key once");
    let Write::Put(Record::Head(head)) = &txn.writes[0] else { panic!("`head` comes first: {txn:?}") };
    assert_eq!((head.epoch, head.batch), (txn.epoch, txn.batch));
}
