//! The report of the committed state. It is built only while no transaction is in flight.

use numbers::{Millis, Namespace};

use crate::core::{HolderReport, NamespaceReport, StatusReport, term::Term};

pub(super) fn report(term: &Term, now: Millis) -> StatusReport {
    let namespaces = term.state.head.namespaces.iter().map(|(name, record)| NamespaceReport {
        name: name.clone(),
        capacity: record.capacity,
        high_watermark: record.high_watermark,
        ceiling: record.ceiling,
        in_hand: in_hand(term, name),
        account: record.account,
    });
    let holders = term.state.holders.iter().map(|(id, record)| HolderReport {
        id: id.clone(),
        incarnation: record.incarnation,
        alive: !term.is_silent(now, id),
        reserved: record.reserved,
        blocks: record.open.len(),
    });
    StatusReport { epoch: term.epoch, namespaces: namespaces.collect(), holders: holders.collect() }
}

/// Returns the unused numbers that holders reported. A report counts only while its holder has an
/// open block of the namespace: after it has returned them all, it has nothing in hand.
fn in_hand(term: &Term, namespace: &Namespace) -> u64 {
    let holds = |id| {
        let record = term.state.holders.get(id);
        record.is_some_and(|record| record.open.iter().any(|open| open.block.namespace == *namespace))
    };
    let reports = term.in_hand.iter().filter(|(id, _)| holds(id)).flat_map(|(_, report)| &report.numbers);
    reports.filter(|(name, _)| name == namespace).map(|(_, count)| *count).sum()
}
