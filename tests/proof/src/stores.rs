//! etcd and Postgres as values: the two compare-and-set stores that the protocol rests on, and nothing of their transport.
//!
//! What gets lost, late or doubled on the way is the business of the model and the simulation.

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
    /// The `create_revision` of the leader key; none while there is no leader.
    pub leader: Option<Epoch>,
    revision: Revision,
    head: Revision,
    records: BTreeMap<Key, Record>,
}

impl FakeEtcd {
    /// Creates the leader key if it is absent; its epoch.
    pub fn campaign(&mut self) -> Option<Epoch> {
        if self.leader.is_some() {
            return None;
        }
        self.revision = self.revision.next();
        self.leader = Some(Epoch(self.revision.0));
        self.leader
    }

    /// Removes the leader key: it was resigned or its lease ran out.
    pub fn vacate(&mut self) {
        self.revision = self.revision.next();
        self.leader = None;
    }

    /// Everything at this instant.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { head: self.head, records: self.records.values().cloned().collect() }
    }

    /// `head` as it is now.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        match self.records.get(&Key::Head) {
            Some(Record::Head(head)) => Some(head),
            _ => None,
        }
    }

    /// Runs a transaction by the rule that every ledger keeps: see `issuer::ledger`.
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

/// An entry of the block register: the numbers and the fencing token they were allocated with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The numbers.
    pub span: Span,
    /// The generation of the allocation.
    pub generation: u64,
}

/// The database: the block register and the links of one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FakeDatabase {
    register: Vec<Entry>,
    links: BTreeMap<u64, u64>,
}

impl FakeDatabase {
    /// Registers a block; whether the register took it. Sending it again is safe.
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

    /// Takes a leaked block over from the generation it was leaked under, or an earlier one; whether nobody has taken it since.
    /// An entry of an open reservation is never removed. Sending it again is safe.
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
            // One transaction: what was deleted comes back with the rest.
            self.register = before;
        }
        taken
    }

    /// Takes the unused numbers of a block out of the register; false when another allocation has some of what is kept. Sending
    /// it again is safe.
    pub fn release(&mut self, entry: Entry, kept: &[Span]) -> bool {
        let is_of_it =
            |other: &Entry| other.generation == entry.generation && entry.span.contains(other.span);
        let meets = |other: &Entry| kept.iter().any(|span| span.overlaps(other.span));
        if self.register.iter().any(|other| !is_of_it(other) && meets(other)) {
            return false;
        }
        self.register.retain(|other| !is_of_it(other));
        self.register.extend(kept.iter().map(|span| Entry { span: *span, generation: entry.generation }));
        true
    }

    /// What is registered.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.register
    }

    /// Whether the number belongs to this very allocation.
    #[must_use]
    pub fn holds(&self, number: u64, generation: u64) -> bool {
        let here = |entry: &&Entry| entry.span.start() <= number && number < entry.span.end();
        self.register.iter().filter(here).any(|entry| entry.generation == generation)
    }

    /// The first number past all that are registered.
    #[must_use]
    pub fn registered_end(&self) -> u64 {
        self.register.iter().map(|entry| entry.span.end()).max().unwrap_or(0)
    }

    /// Inserts a link unless the number is taken; whether it was inserted. The primary key is no switch: it is Postgres's own.
    pub fn insert(&mut self, number: u64, url: u64) -> bool {
        if self.links.contains_key(&number) {
            return false;
        }
        self.links.insert(number, url);
        true
    }

    /// What is stored under a number.
    #[must_use]
    pub fn link(&self, number: u64) -> Option<u64> {
        self.links.get(&number).copied()
    }

    /// The numbers of a range without a link: ascending, disjoint and apart.
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

    /// How many links there are.
    #[must_use]
    pub fn links(&self) -> usize {
        self.links.len()
    }
}
