//! Checks of I1 in the block register: entries do not overlap, and a number passes only from an
//! older allocation to a newer one.

use numbers::Span;

use crate::stores::Entry;

/// The accepted entries of the register, by its own answers.
#[derive(Debug)]
pub(in super::super) struct RegisterCheck {
    pub(super) broken: Option<String>,
    entries: Vec<Vec<Entry>>,
    /// The entries in the copy of the database.
    copy: Vec<Vec<Entry>>,
}

impl RegisterCheck {
    pub(super) fn new(namespaces: usize) -> Self {
        Self { broken: None, entries: vec![Vec::new(); namespaces], copy: Vec::new() }
    }

    /// Records that a copy of the database was made.
    pub(super) fn copied(&mut self) {
        self.copy = self.entries.clone();
    }

    /// Records that the copy has taken over.
    pub(super) fn failed_over(&mut self) {
        self.entries = std::mem::take(&mut self.copy);
    }

    /// Checks an entry that the register accepted.
    pub(in super::super) fn registered(&mut self, namespace: usize, entry: Entry) {
        let entries = &mut self.entries[namespace];
        if entries.contains(&entry) {
            return;
        }
        let other = entries.iter().find(|other| other.span.overlaps(entry.span)).copied();
        entries.push(entry);
        if let Some(other) = other {
            self.broken.get_or_insert(format!("I1: the register holds {entry:?} beside {other:?}"));
        }
    }

    /// Checks a take-over that the register answered.
    pub(in super::super) fn take_over(&mut self, namespace: usize, entry: Entry, leaked: u64, taken: bool) {
        let entries = &mut self.entries[namespace];
        if entries.contains(&entry) {
            return;
        }
        if taken {
            let newer =
                |other: &&Entry| entry.span.overlaps(other.span) && other.generation > entry.generation;
            if let Some(newer) = entries.iter().find(newer) {
                let what = format!("I1: the register goes back from {newer:?} to {entry:?}");
                self.broken.get_or_insert(what);
            }
            entries.retain(|other| !entry.span.contains(other.span) || other.generation > leaked);
            self.registered(namespace, entry);
        }
    }

    /// Records that the register released all but the kept part of an entry.
    pub(in super::super) fn released(&mut self, namespace: usize, entry: Entry, kept: &[Span]) {
        let entries = &mut self.entries[namespace];
        entries.retain(|other| other.generation != entry.generation || !entry.span.contains(other.span));
        entries.extend(kept.iter().map(|span| Entry { span: *span, generation: entry.generation }));
    }
}
