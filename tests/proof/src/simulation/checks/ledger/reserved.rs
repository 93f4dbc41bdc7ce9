//! Checks of G7 in the ledger: the blocks that a reservation gets and keeps.

use issuer::core::{Answer, LeakedBlock, Refusal};
use numbers::{HolderId, Incarnation, Namespace, Span};

use super::LedgerCheck;

/// Returns whether this is the name of a reservation's holder.
pub(super) fn is_reservation(holder: &HolderId) -> bool {
    holder.as_str().starts_with('r')
}

impl LedgerCheck {
    pub(super) fn reserve(&mut self, spans: Vec<(usize, Span)>) {
        for (namespace, span) in spans {
            self.ever_reserved.extend((span.start()..span.end()).map(|number| (namespace, number)));
        }
    }

    /// Checks that a reservation's block leaks only after it was given up (G7).
    pub(super) fn leaked(&mut self, namespace: &Namespace, leaked: &LeakedBlock) {
        if !is_reservation(&leaked.holder) {
            return;
        }
        self.reserve(vec![(self.index(namespace), leaked.span)]);
        let holder = self.holders.get(&leaked.holder);
        if holder.is_some_and(|record| record.reserved && record.incarnation == leaked.incarnation) {
            self.fail(format!("G7: {leaked:?} was leaked though its reservation is open"));
        }
    }

    /// Returns the numbers of open reservations.
    pub(in super::super) fn reserved(&self, namespace: usize) -> Vec<Span> {
        let holders = self.holders.iter().filter(|(id, record)| is_reservation(id) && record.reserved);
        let open = holders.flat_map(|(_, record)| &record.open);
        let here = open.filter(|held| held.block.namespace == self.namespaces[namespace]);
        here.map(|held| held.block.span).collect()
    }

    /// Returns whether a reservation has or had the number. It may have had the number when an
    /// issuer answered that all numbers are used.
    pub(in super::super) fn was_reserved(&self, namespace: usize, number: u64) -> bool {
        self.ever_reserved.contains(&(namespace, number))
    }

    /// Checks that a reservation gets no leaked numbers, and no more than it asks for (G7).
    pub(super) fn judge_reserved(
        &mut self,
        holder: &HolderId,
        incarnation: Incarnation,
        wanted_len: u64,
        answer: &Result<Answer, Refusal>,
    ) {
        let Ok(Answer::Allocated { block, leaked, .. }) = answer else { return };
        let record = self.holders.get(holder);
        let reserved = record.is_some_and(|record| record.reserved && record.incarnation == incarnation);
        if reserved && (leaked.is_some() || block.span.len() > wanted_len) {
            self.fail(format!(
                "G7: a reservation asked for {wanted_len} and got {block:?}, leaked {leaked:?}"
            ));
        }
    }
}
