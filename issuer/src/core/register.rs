//! A holder starts: it gets an incarnation, and what its earlier start held is leaked.

use std::collections::BTreeMap;

use crate::{
    core::{
        Answer, HolderRecord, NamespaceRecord, Refusal, account::Account, leak::leak_open_blocks, term::Term,
    },
    ledger::Key,
    names::{HolderId, Instance, Namespace},
    tokens::{Incarnation, Millis, Seq},
};

/// Registers a start. The same instance gets the same incarnation again: a repeated call changes nothing.
pub(super) fn register(
    term: &mut Term,
    now: Millis,
    holder: &HolderId,
    instance: Instance,
    namespaces: &[(Namespace, u64)],
    head_changed: &mut bool,
) -> Result<Answer, Refusal> {
    check_room(term, holder, namespaces)?;
    for (namespace, capacity) in namespaces {
        *head_changed |= admit_namespace(term, namespace, *capacity);
    }
    let known = term.state.holders.get(holder);
    if let Some(record) = known.filter(|record| record.instance == instance) {
        return Ok(answer(term, record.incarnation, record.last_seq));
    }
    let incarnation = known.map_or(Incarnation(1), |record| record.incarnation.next());
    leak_open_blocks(term, now, holder);
    let record = HolderRecord {
        incarnation,
        instance,
        last_seq: Seq(0),
        last_reply: None,
        open: Vec::new(),
        // A first block is short again, so that a crash loop leaks little.
        last_len: BTreeMap::new(),
    };
    term.state.holders.insert(holder.clone(), record);
    term.state.touch(Key::Holder(holder.clone()));
    Ok(answer(term, incarnation, Seq(0)))
}

fn answer(term: &Term, incarnation: Incarnation, last_seq: Seq) -> Answer {
    Answer::Registered { incarnation, epoch: term.epoch, last_seq }
}

/// Refuses before anything is changed, so that a refused registration leaves no trace.
fn check_room(term: &Term, holder: &HolderId, namespaces: &[(Namespace, u64)]) -> Result<(), Refusal> {
    let known = &term.state.head.namespaces;
    for (namespace, capacity) in namespaces {
        if let Some(record) = known.get(namespace).filter(|record| *capacity < record.capacity) {
            let current = record.capacity;
            return Err(Refusal::CapacityShrunk { namespace: namespace.clone(), current, got: *capacity });
        }
    }
    let new = namespaces.iter().filter(|(namespace, _)| !known.contains_key(namespace)).count();
    if known.len() + new > term.limits.namespaces {
        return Err(Refusal::TooMany { what: "namespaces", limit: term.limits.namespaces });
    }
    if !term.state.holders.contains_key(holder) && term.state.holders.len() >= term.limits.holders {
        return Err(Refusal::TooMany { what: "holders", limit: term.limits.holders });
    }
    Ok(())
}

/// Creates a namespace or raises its capacity; says whether `head` changed.
fn admit_namespace(term: &mut Term, namespace: &Namespace, capacity: u64) -> bool {
    let fresh = NamespaceRecord { capacity: 0, high_watermark: 0, account: Account::default() };
    let record = term.state.head.namespaces.entry(namespace.clone()).or_insert(fresh);
    let grows = record.capacity < capacity;
    record.capacity = record.capacity.max(capacity);
    grows
}
