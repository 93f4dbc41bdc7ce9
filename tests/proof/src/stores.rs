//! etcd and Postgres as values: the two compare-and-set stores that the protocol relies on, without
//! their transport.
//!
//! The model and the simulation lose, delay and duplicate messages on the way.

use std::collections::BTreeMap;

use issuer::{
    core::Head,
    ledger::{HeadRead, Key, Record, Snapshot, Txn, TxnOutcome, Write},
};
use numbers::{Epoch, Revision, Span};

use crate::Mutant;

/// The ledger's keys in etcd, with the leader key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FakeEtcd {
    /// The `create_revision` of the leader key; `None` while there is no leader.
    pub leader: Option<Epoch>,
    revision: Revision,
    head: Revision,
    records: BTreeMap<Key, Record>,
}

impl FakeEtcd {
    /// Creates the leader key and returns its epoch; `None` if the key exists.
    pub fn campaign(&mut self) -> Option<Epoch> {
        if self.leader.is_some() {
            return None;
        }
        self.revision = self.revision.next();
        self.leader = Some(Epoch(self.revision.0));
        self.leader
    }

    /// Removes the leader key, because it was resigned or its lease expired.
    pub fn vacate(&mut self) {
        self.revision = self.revision.next();
        self.leader = None;
    }

    /// Returns all records at this instant.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { head: self.head, records: self.records.values().cloned().collect() }
    }

    /// Returns the current `head`; `None` before the first transaction.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        match self.records.get(&Key::Head) {
            Some(Record::Head(head)) => Some(head),
            _ => None,
        }
    }

    /// Executes a transaction under the rule that every ledger obeys: see `issuer::ledger`.
    pub fn commit(&mut self, txn: &Txn, mutant: Option<Mutant>) -> TxnOutcome {
        let leads = self.leader == Some(txn.epoch) || mutant == Some(Mutant::EpochCompare);
        let unchanged = self.head == txn.head || mutant == Some(Mutant::HeadCompare);
        if !(leads && unchanged) {
            let read = |head: &Head| HeadRead { head: head.clone(), revision: self.head };
            return TxnOutcome::Refused(self.head().map(read));
        }
        self.revision = self.revision.next();
        self.head = self.revision;
        for write in txn.writes.iter() {
            match write {
                Write::Put(record) => self.records.insert(record.key(), record.clone()),
                Write::Delete(key) => self.records.remove(key),
            };
        }
        TxnOutcome::Applied(self.head)
    }
}

/// An entry of the block register: a range of numbers and the fencing token of its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The range of numbers.
    pub span: Span,
    /// The fencing token of the allocation.
    pub generation: u64,
}

/// The database: the block register and the links of one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FakeDatabase {
    register: Vec<Entry>,
    links: BTreeMap<u64, u64>,
}

impl FakeDatabase {
    /// Registers a block, and returns whether the register accepted it. Idempotent.
    pub fn register(&mut self, entry: Entry, mutant: Option<Mutant>) -> bool {
        if self.register.contains(&entry) {
            return true;
        }
        let free = !self.register.iter().any(|other| other.span.overlaps(entry.span));
        if free || mutant == Some(Mutant::RegisterConstraint) {
            self.register.push(entry);
            return true;
        }
        false
    }

    /// Takes over a block that was leaked under the generation `leaked`. Register entries of that
    /// generation or an earlier one are replaced, except those of an open reservation. Returns
    /// false if another holder has taken the block over since. Idempotent.
    pub fn take_over(
        &mut self,
        entry: Entry,
        leaked: u64,
        is_reserved: impl Fn(&Entry) -> bool,
        mutant: Option<Mutant>,
    ) -> bool {
        if self.register.contains(&entry) {
            return true;
        }
        let before = self.register.clone();
        let compares = mutant != Some(Mutant::GenerationCompare);
        self.register.retain(|other| {
            let older = other.generation <= leaked || !compares;
            !(entry.span.contains(other.span) && older) || is_reserved(other)
        });
        let taken = self.register(entry, mutant);
        if !taken {
            // It is one transaction, so the deletions are rolled back too.
            self.register = before;
        }
        taken
    }

    /// Removes the unused numbers of a block from the register. Returns false if another allocation
    /// has some of the kept ones. Idempotent.
    pub fn release(&mut self, entry: Entry, kept: &[Span], mutant: Option<Mutant>) -> bool {
        let compares = mutant != Some(Mutant::ReleaseCompare);
        let is_of_it = |other: &Entry| {
            let same = other.generation == entry.generation || !compares;
            same && entry.span.contains(other.span)
        };
        let meets = |other: &Entry| kept.iter().any(|span| span.overlaps(other.span));
        if self.register.iter().any(|other| !is_of_it(other) && meets(other)) {
            return false;
        }
        self.register.retain(|other| !is_of_it(other));
        self.register.extend(kept.iter().map(|span| Entry { span: *span, generation: entry.generation }));
        true
    }

    /// Returns the register's entries.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.register
    }

    /// Returns whether the register assigns the number to this very allocation.
    #[must_use]
    pub fn holds(&self, number: u64, generation: u64) -> bool {
        let here = |entry: &&Entry| entry.span.start() <= number && number < entry.span.end();
        self.register.iter().filter(here).any(|entry| entry.generation == generation)
    }

    /// Returns the first number past all registered ones.
    #[must_use]
    pub fn registered_end(&self) -> u64 {
        self.register.iter().map(|entry| entry.span.end()).max().unwrap_or(0)
    }

    /// Inserts a link, and returns false if the number is taken. The primary key cannot be switched
    /// off: Postgres itself enforces it.
    pub fn insert(&mut self, number: u64, url: u64) -> bool {
        if self.links.contains_key(&number) {
            return false;
        }
        self.links.insert(number, url);
        true
    }

    /// Returns the URL that is stored under a number.
    #[must_use]
    pub fn link(&self, number: u64) -> Option<u64> {
        self.links.get(&number).copied()
    }

    /// Returns the numbers of a range without a link, as ascending, disjoint and non-adjacent
    /// ranges.
    #[must_use]
    pub fn unused(&self, span: Span) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut from = span.start();
        for (number, _) in self.links.range(span.start()..span.end()) {
            spans.extend(Span::new(from, number - from).ok());
            from = number + 1;
        }
        spans.extend(Span::new(from, span.end() - from).ok());
        spans
    }

    /// Returns the count of links.
    #[must_use]
    pub fn links(&self) -> usize {
        self.links.len()
    }
}
