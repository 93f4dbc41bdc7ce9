//! A ledger that enforces what etcd does, and checks what it has after each transaction.

use std::collections::BTreeMap;

use issuer::core::{
    Head, HeadRead, Key, Limits, NamespaceRecord, Record, Snapshot, State, Txn, TxnOutcome, Write,
};
use numbers::{Block, Epoch, Generation, HolderId, Incarnation, Namespace, Revision, Span};

/// Guarded transactions, and the checks after each.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) leader: Epoch,
    revision: Revision,
    records: BTreeMap<Key, Record>,
    /// Blocks that were open or leaked after a transaction, by their generations.
    committed: BTreeMap<Generation, Block>,
}

impl Ledger {
    pub(crate) fn head(&self) -> Option<&Head> {
        match self.records.get(&Key::Head) {
            Some(Record::Head(head)) => Some(head),
            _ => None,
        }
    }

    /// Returns whether a holder is a reservation in this incarnation.
    pub(crate) fn is_reserved(&self, holder: &HolderId, incarnation: Incarnation) -> bool {
        match self.records.get(&Key::Holder(holder.clone())) {
            Some(Record::Holder(_, record)) => record.reserved && record.incarnation == incarnation,
            _ => false,
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot { head: self.revision, records: self.records.values().cloned().collect() }
    }

    pub(crate) fn apply(&mut self, txn: &Txn, limits: &Limits) -> TxnOutcome {
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
    pub(crate) fn check_committed(&self, block: &Block) {
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
