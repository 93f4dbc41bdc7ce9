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

use std::collections::{BTreeMap, BTreeSet};

use issuer::core::{
    Answer, Core, Effect, Event, Head, HeadRead, Key, Limits, MAX_TXN_WRITES, NamespaceRecord, Record,
    Refusal, Request, Returned, Snapshot, State, Txn, TxnOutcome, Write,
};
use libfuzzer_sys::fuzz_target;
use numbers::{
    Block, Epoch, Generation, HolderId, Incarnation, Instance, Mark, Millis, Namespace, Revision, Seq, Span,
    StoreEpoch, Ticket,
};

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

/// A command: what happens next.
#[derive(Clone, Copy, Debug)]
enum Script {
    /// `r`: a holder registers. The argument chooses holder, start and capacity.
    Register,
    /// `a`: a holder asks for a block. The argument chooses holder, namespace and length.
    Allocate,
    /// `o`: as `a`, with a seq or an incarnation that is not the next one.
    AllocateOddly,
    /// `k`: a holder sends a beat. The argument chooses holder, numbers in hand and the last seq.
    Beat,
    /// `b`: a holder returns a block. The argument chooses the block and how much of it is used.
    Return,
    /// `x`: as `b`, and the database has registered later numbers.
    ReturnPast,
    /// `s`: the status is read.
    Status,
    /// `t`: time passes, ten milliseconds for each unit of the argument, and both issuers tick.
    Tick,
    /// `c`: a transaction applies, and its reply arrives.
    Commit,
    /// `l`: a transaction applies, and its reply is lost.
    LoseReply,
    /// `n`: a transaction is lost, so that its outcome is unknown.
    LoseTxn,
    /// `d`: a transaction is late: its outcome is unknown, and it may still apply.
    Delay,
    /// `p`: a late transaction arrives at the ledger.
    Arrive,
    /// `e`: an issuer wins an election.
    Elect,
    /// `g`: as `e`, with the snapshot of an earlier moment.
    ElectStale,
    /// `f`: an issuer hears that it does not lead.
    Follow,
    /// `w`: an issuer wakes after it was suspended.
    Wake,
    /// `q`: an issuer is asked to stop.
    Retire,
    /// `h`: the database history of a holder changes.
    ChangeStore,
    /// `m`: the current ledger is remembered as an earlier moment.
    Remember,
}

impl Script {
    const TABLE: [(u8, Self); 20] = [
        (b'r', Self::Register),
        (b'a', Self::Allocate),
        (b'o', Self::AllocateOddly),
        (b'k', Self::Beat),
        (b'b', Self::Return),
        (b'x', Self::ReturnPast),
        (b's', Self::Status),
        (b't', Self::Tick),
        (b'c', Self::Commit),
        (b'l', Self::LoseReply),
        (b'n', Self::LoseTxn),
        (b'd', Self::Delay),
        (b'p', Self::Arrive),
        (b'e', Self::Elect),
        (b'g', Self::ElectStale),
        (b'f', Self::Follow),
        (b'w', Self::Wake),
        (b'q', Self::Retire),
        (b'h', Self::ChangeStore),
        (b'm', Self::Remember),
    ];

    /// Returns the command of two bytes with its argument. Digits stand for their values.
    fn of([name, argument]: [u8; 2]) -> (Self, usize) {
        let named = Self::TABLE.iter().find(|(one, _)| *one == name);
        let (_, command) = named.unwrap_or(&Self::TABLE[usize::from(name) % Self::TABLE.len()]);
        (*command, usize::from(argument.wrapping_sub(b'0')))
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
        // What is left is behind the used and burned numbers, with a gap if there is room for one.
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

/// What becomes of a transaction.
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

/// The ledger: guarded transactions, and the checks after each.
#[derive(Default)]
struct Ledger {
    leader: Epoch,
    revision: Revision,
    records: BTreeMap<Key, Record>,
    /// Blocks that were open or leaked after a transaction, by their generations.
    committed: BTreeMap<Generation, Block>,
}

impl Ledger {
    fn head(&self) -> Option<&Head> {
        match self.records.get(&Key::Head) {
            Some(Record::Head(head)) => Some(head),
            _ => None,
        }
    }

    /// Returns whether a holder is a reservation in this incarnation.
    fn is_reserved(&self, holder: &HolderId, incarnation: Incarnation) -> bool {
        match self.records.get(&Key::Holder(holder.clone())) {
            Some(Record::Holder(_, record)) => record.reserved && record.incarnation == incarnation,
            _ => false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { head: self.revision, records: self.records.values().cloned().collect() }
    }

    fn apply(&mut self, txn: &Txn, limits: &Limits) -> TxnOutcome {
        if txn.epoch != self.leader || txn.head != self.revision {
            let read = |head: &Head| HeadRead { head: head.clone(), revision: self.revision };
            return TxnOutcome::Refused(self.head().map(read));
        }
        let before = self.head().cloned().unwrap_or_default();
        self.revision = self.revision.next();
        for write in txn.writes.iter() {
            match write {
                Write::Put(record) => self.records.insert(record.key(), record.clone()),
                Write::Delete(key) => self.records.remove(key),
            };
        }
        self.check(&before, limits);
        TxnOutcome::Applied(self.revision)
    }

    /// Reads the ledger as a new leader would, and checks I1, I2 and I10.
    fn check(&mut self, before: &Head, limits: &Limits) {
        let state = State::rebuild(self.snapshot());
        assert!(state.head.batch > before.batch && state.head.generation >= before.generation);
        assert!(state.holders.len() <= limits.holders && state.head.namespaces.len() <= limits.namespaces);
        for (name, record) in &state.head.namespaces {
            check_moves(name, before.namespaces.get(name), record);
            check_places(&state, name, record);
        }
        assert!(before.namespaces.keys().all(|name| state.head.namespaces.contains_key(name)));
        for holder in state.holders.values() {
            assert!(holder.open.len() <= limits.open_blocks);
            holder.open.iter().for_each(|open| self.commit(open.block.clone()));
        }
        for ((namespace, _), leaked) in &state.leaked {
            let is_reserved = self.is_reserved(&leaked.holder, leaked.incarnation);
            assert!(!is_reserved, "a reservation lost {leaked:?}");
            let (namespace, span, generation) = (namespace.clone(), leaked.span, leaked.generation);
            self.commit(Block { namespace, span, generation });
        }
    }

    fn commit(&mut self, block: Block) {
        let known = self.committed.entry(block.generation).or_insert_with(|| block.clone());
        assert_eq!(*known, block, "a generation stands for one block");
    }

    /// Checks I3. A block that was allocated and lost again within one transaction is in no record,
    /// so its generation alone has to be committed.
    fn check_committed(&self, block: &Block) {
        let latest = self.head().map_or(Generation(0), |head| head.generation);
        assert!(block.generation <= latest, "I3: {block:?} was answered before its commit");
        let known = self.committed.get(&block.generation);
        assert!(
            known.is_none_or(|known| known == block),
            "I3: {block:?} was answered, {known:?} was committed"
        );
    }
}

fn check_moves(name: &Namespace, before: Option<&NamespaceRecord>, record: &NamespaceRecord) {
    assert!(record.is_sound(), "I10 or the ceiling of {name}: {record:?}");
    let Some(before) = before else { return };
    let moves = |record: &NamespaceRecord| {
        let account = record.account;
        [
            record.high_watermark,
            record.ceiling,
            record.announced,
            record.capacity,
            account.allocated,
            account.used,
            account.burned,
        ]
    };
    let is_back = moves(before).into_iter().zip(moves(record)).any(|(before, after)| after < before);
    assert!(!is_back, "I2: {name} went from {before:?} to {record:?}");
}

fn check_places(state: &State, name: &Namespace, record: &NamespaceRecord) {
    let open: Vec<Span> = state
        .holders
        .values()
        .flat_map(|holder| &holder.open)
        .filter(|open| open.block.namespace == *name)
        .map(|open| open.block.span)
        .collect();
    let of = |key: &(Namespace, u64)| key.0 == *name;
    let free: Vec<Span> = state.free.iter().filter(|(key, _)| of(key)).map(|(_, part)| part.span).collect();
    let leaked: Vec<Span> = state.leaked.iter().filter(|(key, _)| of(key)).map(|(_, one)| one.span).collect();
    let sum = |spans: &[Span]| spans.iter().map(|span| span.len()).sum::<u64>();
    let account = record.account;
    assert_eq!(
        (account.open, account.free, account.leaked, account.allocated),
        (sum(&open), sum(&free), sum(&leaked), record.high_watermark),
        "I10: {name}"
    );
    let mut all = [open, free, leaked].concat();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0].end() <= pair[1].start()), "I1: {name} has {all:?}");
    assert!(all.last().is_none_or(|span| span.end() <= record.high_watermark), "I1: {name} has {all:?}");
}
