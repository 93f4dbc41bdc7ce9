//! Checks of I1, I2, I3, I5, I10 and the fencing of the ledger, from the applied transactions and
//! the answers.
//!
//! The accounts here are kept from the writes alone. So if the core changes an account wrongly, it
//! differs from the records that the core wrote.

mod reserved;

use std::collections::{BTreeMap, BTreeSet};

use issuer::{
    core::{Answer, Entry, Head, HolderRecord, LeakedBlock, Refusal, Request, State},
    ledger::{Key, Record, Snapshot, Txn, Write},
};
use numbers::{Block, Epoch, HolderId, Incarnation, Namespace, Seq, Span};

use self::reserved::is_reservation;
use super::super::summary::{Happening, Summary};

/// The state of numbers according to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Open,
    Free,
    Leaked,
}

/// The key of an allocation request.
type Asked = (HolderId, Incarnation, Seq);

/// The progress of a namespace.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    high_watermark: u64,
    ceiling: u64,
    announced: u64,
    capacity: u64,
    /// The capacity before the last raise; 0 if it was never raised.
    earlier: u64,
}

/// The check of the ledger.
#[derive(Debug)]
pub(super) struct LedgerCheck {
    pub(super) broken: Option<String>,
    namespaces: Vec<Namespace>,
    marks: Vec<Marks>,
    /// Every holder, with its journal entries applied.
    holders: BTreeMap<HolderId, HolderRecord>,
    /// The numbers that each key accounts for, with their states.
    places: BTreeMap<Key, Vec<(usize, Span, Place)>>,
    /// The same by namespace and start number: end and state.
    spans: BTreeMap<(usize, u64), (u64, Place)>,
    /// The committed answer to each request, in this history of the ledger.
    replies: BTreeMap<Asked, Block>,
    /// Blocks that were committed as allocated, in any history.
    committed: BTreeSet<Block>,
    answered: BTreeSet<Asked>,
    /// Numbers that a reservation has had at some time.
    ever_reserved: BTreeSet<(usize, u64)>,
}

impl LedgerCheck {
    pub(super) fn new(namespaces: Vec<Namespace>) -> Self {
        Self {
            broken: None,
            marks: vec![Marks::default(); namespaces.len()],
            namespaces,
            holders: BTreeMap::new(),
            places: BTreeMap::new(),
            spans: BTreeMap::new(),
            replies: BTreeMap::new(),
            committed: BTreeSet::new(),
            answered: BTreeSet::new(),
            ever_reserved: BTreeSet::new(),
        }
    }

    fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    fn index(&self, namespace: &Namespace) -> usize {
        self.namespaces.iter().position(|name| name == namespace).unwrap_or(0)
    }

    /// Returns the numbers that were returned unused, by the ledger's records.
    pub(super) fn free(&self, namespace: usize) -> Vec<Span> {
        let here = self.spans.range((namespace, 0)..(namespace + 1, 0));
        let free = here.filter(|(_, (_, place))| *place == Place::Free);
        free.filter_map(|((_, start), (end, _))| Span::new(*start, end - start).ok()).collect()
    }

    /// Checks an applied transaction.
    pub(super) fn applied(&mut self, txn: &Txn, leader: Option<Epoch>, summary: &mut Summary) {
        if leader != Some(txn.epoch) {
            self.fail(format!(
                "fencing: a transaction of epoch {} applied while the leader was {leader:?}",
                txn.epoch
            ));
        }
        let writes = self.follow_journals(txn);
        let written = |write: &Write| match write {
            Write::Put(record) => record.key(),
            Write::Delete(key) => key.clone(),
        };
        for write in &writes {
            self.forget(&written(write));
        }
        let mut head = None;
        for write in &writes {
            match write {
                Write::Put(Record::Head(written)) => head = Some(written),
                Write::Put(record) => self.learn(record),
                Write::Delete(_) => {}
            }
        }
        if let Some(head) = head {
            self.head(head, summary);
        }
    }

    /// Returns a transaction's writes, with the current holder records in place of journal entries.
    fn follow_journals(&mut self, txn: &Txn) -> Vec<Write> {
        let mut writes = Vec::new();
        for write in txn.writes.iter() {
            match write {
                Write::Put(Record::Journal(_, journal)) => {
                    self.follow_entries(&journal.entries, &mut writes);
                    continue;
                }
                Write::Put(Record::Head(head)) => self.follow_entries(&head.recent, &mut writes),
                Write::Put(Record::Holder(id, record)) => {
                    self.holders.insert(id.clone(), record.clone());
                }
                Write::Delete(Key::Holder(id)) => {
                    self.holders.remove(id);
                }
                _ => {}
            }
            writes.push(write.clone());
        }
        writes
    }

    fn follow_entries(&mut self, entries: &[Entry], writes: &mut Vec<Write>) {
        for entry in entries {
            let record = self.holders.get_mut(&entry.holder);
            // `head` lists an entry until a journal or its holder's record has it, and a journal
            // begins with the entries that `head` listed.
            let Some(record) = record.filter(|record| record.last_seq < entry.seq) else { continue };
            record.allocated(entry.clone());
            writes.retain(|write| !matches!(write, Write::Put(Record::Holder(id, _)) if *id == entry.holder));
            writes.push(Write::Put(Record::Holder(entry.holder.clone(), record.clone())));
        }
    }

    /// Checks the ledger that a leader has read in its current state: holders' records and journals
    /// together contain all that was ever written.
    pub(super) fn read(&mut self, snapshot: &Snapshot) {
        let found = State::rebuild(snapshot.clone()).holders;
        let told = |holders: &BTreeMap<HolderId, HolderRecord>| -> Vec<_> {
            let told = |(id, record): (&HolderId, &HolderRecord)| {
                (
                    id.clone(),
                    record.incarnation,
                    record.last_seq,
                    record.last_reply.clone(),
                    record.open.clone(),
                )
            };
            holders.iter().map(told).collect()
        };
        let (found, written) = (told(&found), told(&self.holders));
        if found != written {
            self.fail(format!("journal: a leader reads {found:?}, and {written:?} was written"));
        }
    }

    /// Removes the statements of a key.
    fn forget(&mut self, key: &Key) {
        for (namespace, span, _) in self.places.remove(key).unwrap_or_default() {
            self.spans.remove(&(namespace, span.start()));
        }
    }

    /// Adds the statements of a record, and checks that no number is in two places (I1) and no
    /// request has two blocks (I5).
    fn learn(&mut self, record: &Record) {
        let said: Vec<_> = match record {
            Record::Head(_) | Record::Journal(..) => return,
            Record::Holder(id, holder) => {
                if let Some(reply) = &holder.last_reply {
                    self.replied((id.clone(), holder.incarnation, holder.last_seq), &reply.block);
                }
                self.committed.extend(holder.open.iter().map(|held| held.block.clone()));
                if is_reservation(id) {
                    self.reserve(
                        holder
                            .open
                            .iter()
                            .map(|held| (self.index(&held.block.namespace), held.block.span))
                            .collect(),
                    );
                }
                let open = |block: &Block| (self.index(&block.namespace), block.span, Place::Open);
                holder.open.iter().map(|held| open(&held.block)).collect()
            }
            Record::Leaked(namespace, leaked) => {
                // A holder may start again in the very batch that allocates a block to its last
                // start.
                let LeakedBlock { span, generation, .. } = *leaked;
                self.committed.insert(Block { namespace: namespace.clone(), span, generation });
                self.leaked(namespace, leaked);
                vec![(self.index(namespace), span, Place::Leaked)]
            }
            Record::Free(namespace, part) => vec![(self.index(namespace), part.span, Place::Free)],
        };
        for (namespace, span, place) in &said {
            self.enter(*namespace, *span, *place);
        }
        self.places.insert(record.key(), said);
    }

    fn enter(&mut self, namespace: usize, span: Span, place: Place) {
        let before = self.spans.range(..(namespace, span.end())).next_back();
        let overlaps =
            before.is_some_and(|((owner, _), (end, _))| *owner == namespace && *end > span.start());
        if overlaps {
            self.fail(format!("I1: {span:?} of namespace {namespace} is in two places of the ledger"));
        }
        self.spans.insert((namespace, span.start()), (span.end(), place));
    }

    fn replied(&mut self, asked: Asked, block: &Block) {
        if self.replies.get(&asked) == Some(block) {
            return;
        }
        if let Some(other) = self.replies.insert(asked.clone(), block.clone()) {
            self.fail(format!("I5: {asked:?} was given {other:?} and {block:?}"));
        }
    }

    fn head(&mut self, head: &Head, summary: &mut Summary) {
        for (name, record) in &head.namespaces {
            let index = self.index(name);
            let before = self.marks[index];
            let is_raised = before.capacity > 0 && record.capacity > before.capacity;
            let marks = Marks {
                high_watermark: record.high_watermark,
                ceiling: record.ceiling,
                announced: record.announced,
                capacity: record.capacity,
                earlier: if is_raised { before.capacity } else { before.earlier },
            };
            self.marks[index] = marks;
            summary.add(Happening::Raise, u64::from(is_raised));
            if marks.capacity < before.capacity {
                self.fail(format!("capacity: {name} had {}, then {}", before.capacity, marks.capacity));
            }
            let allocates = marks.high_watermark > before.high_watermark;
            let past_earlier = marks.earlier > 0 && marks.high_watermark > marks.earlier;
            summary.add(Happening::RaisedUsed, u64::from(allocates && past_earlier));
            if marks.high_watermark < before.high_watermark {
                self.fail(format!("I2: the high watermark of {name} went from {before:?} to {marks:?}"));
            }
            if marks.ceiling < before.ceiling || marks.announced < before.announced || !record.is_sound() {
                self.fail(format!("I10 or the ceiling of {name}: {before:?}, then {record:?}"));
            }
            let account = record.account;
            let sums = self.sums(index);
            let counted = (account.open, account.free, account.leaked, account.allocated);
            if counted != (sums[0], sums[1], sums[2], record.high_watermark) {
                self.fail(format!("I10: {name} has {account:?}, its records say {sums:?} below {marks:?}"));
            }
        }
    }

    /// Returns the high watermark: how many numbers were ever allocated.
    pub(super) fn allocated(&self, namespace: usize) -> u64 {
        self.marks[namespace].high_watermark
    }

    /// Returns the numbers that are open, free or leaked.
    pub(super) fn not_settled(&self, namespace: usize) -> Vec<Span> {
        let spans = self.spans.range((namespace, 0)..(namespace + 1, 0));
        spans.filter_map(|((_, start), (end, _))| Span::new(*start, end - start).ok()).collect()
    }

    /// Returns how many numbers are open, free and leaked, in this order.
    fn sums(&self, namespace: usize) -> [u64; 3] {
        let mut sums = [0; 3];
        for ((_, start), (end, place)) in self.spans.range((namespace, 0)..(namespace + 1, 0)) {
            sums[match place {
                Place::Open => 0,
                Place::Free => 1,
                Place::Leaked => 2,
            }] += end - start;
        }
        sums
    }

    /// Checks an issuer's answer. A block must be committed for this very request (I3), and be the
    /// same each time (I5).
    pub(super) fn answered(
        &mut self,
        request: &Request,
        answer: &Result<Answer, Refusal>,
        summary: &mut Summary,
    ) {
        match (request, answer) {
            (Request::Allocate { holder, incarnation, seq, .. }, Ok(Answer::Allocated { block, .. })) => {
                let asked = (holder.clone(), *incarnation, *seq);
                let again = !self.answered.insert(asked.clone());
                let happened = if again { Happening::RepeatedSeq } else { Happening::Allocation };
                summary.add(happened, 1);
                if let Request::Allocate { wanted_len, .. } = request {
                    self.judge_reserved(holder, *incarnation, *wanted_len, answer);
                }
                if !self.committed.contains(block) {
                    self.fail(format!("I3: answered to {asked:?} but never committed: {block:?}"));
                }
            }
            (_, Err(Refusal::Seq { .. })) => summary.add(Happening::SeqRefused, 1),
            (_, Err(Refusal::Exhausted { .. })) => summary.add(Happening::Exhausted, 1),
            (_, Err(Refusal::CapacityShrunk { .. })) => summary.add(Happening::LoweringRefused, 1),
            _ => {}
        }
    }

    /// Rebuilds the accounts from a restored ledger.
    pub(super) fn restored(&mut self, snapshot: &Snapshot) {
        let fresh = Self::new(std::mem::take(&mut self.namespaces));
        let (committed, broken) = (std::mem::take(&mut self.committed), self.broken.take());
        let ever_reserved = std::mem::take(&mut self.ever_reserved);
        *self = Self { committed, broken, ever_reserved, ..fresh };
        let mut heads = Vec::new();
        self.holders = State::rebuild(snapshot.clone()).holders;
        for (id, holder) in self.holders.clone() {
            self.learn(&Record::Holder(id, holder));
        }
        for record in &snapshot.records {
            match record {
                Record::Head(head) => heads.push(head),
                Record::Holder(..) => {}
                record => self.learn(record),
            }
        }
        for head in heads {
            self.head(head, &mut Summary::default());
        }
    }
}
