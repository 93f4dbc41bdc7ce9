//! G7 in the ledger: what a reservation gets, and that it keeps it.

use issuer::core::{Answer, LeakedBlock, Refusal};
use numbers::{HolderId, Incarnation, Namespace, Span};

use super::LedgerCheck;

/// Whether this is the name of a reservation's holder.
pub(super) fn is_reservation(holder: &HolderId) -> bool {
    holder.as_str().starts_with('r')
}

impl LedgerCheck {
    pub(super) fn reserve(&mut self, spans: Vec<(usize, Span)>) {
        for (namespace, span) in spans {
            self.ever_reserved.extend((span.start()..span.end()).map(|number| (namespace, number)));
        }
    }

    /// G7: what a reservation holds is leaked only when it is given up.
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

    /// What reservations hold.
    pub(in super::super) fn reserved(&self, namespace: usize) -> Vec<Span> {
        let holders = self.holders.iter().filter(|(id, record)| is_reservation(id) && record.reserved);
        let open = holders.flat_map(|(_, record)| &record.open);
        let here = open.filter(|held| held.block.namespace == self.namespaces[namespace]);
        here.map(|held| held.block.span).collect()
    }

    /// Whether a reservation has or had the number. An answer that says that all numbers are used
    /// may have been given when it had.
    pub(in super::super) fn was_reserved(&self, namespace: usize, number: u64) -> bool {
        self.ever_reserved.contains(&(namespace, number))
    }

    /// G7: a reservation gets no numbers that were leaked, and no more than it asks for.
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
