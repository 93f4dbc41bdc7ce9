//! The report of the committed state. It is built only while no transaction is in flight.

use numbers::{Millis, Namespace};

use crate::core::{HolderReport, NamespaceReport, StatusReport, leader_state::LeaderState};

pub(super) fn report(leader: &LeaderState, now: Millis) -> StatusReport {
    let namespaces = leader.state.head.namespaces.iter().map(|(name, record)| NamespaceReport {
        name: name.clone(),
        record: record.clone(),
        in_hand: in_hand(leader, name),
    });
    let holders = leader.state.holders.iter().map(|(id, record)| HolderReport {
        id: id.clone(),
        incarnation: record.incarnation,
        alive: !leader.is_silent(now, id),
        reserved: record.reserved,
        blocks: record.open.len(),
    });
    StatusReport { epoch: leader.epoch, namespaces: namespaces.collect(), holders: holders.collect() }
}

/// Returns the unused numbers that holders reported. A report counts only while its holder has an
/// open block of the namespace: after it has returned them all, it has nothing in hand.
fn in_hand(leader: &LeaderState, namespace: &Namespace) -> u64 {
    let holds = |id| {
        let record = leader.state.holders.get(id);
        record.is_some_and(|record| record.open.iter().any(|open| open.block.namespace == *namespace))
    };
    let reports = leader.in_hand.iter().filter(|(id, _)| holds(id)).flat_map(|(_, report)| &report.numbers);
    reports.filter(|(name, _)| name == namespace).map(|(_, count)| *count).sum()
}
