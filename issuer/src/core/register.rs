//! Registration of a holder's start: it gets an incarnation, and the blocks of its earlier start
//! are leaked.

use std::collections::BTreeMap;

use numbers::{Batch, HolderId, Incarnation, Instance, LedgerId, Millis, Namespace, Seq};

use crate::{
    core::{
        Answer, HolderRecord, NamespaceRecord, Refusal, account::Account, ceiling, guard::Guard,
        leak::leak_open_blocks, term::Term,
    },
    ledger::Key,
};

/// The arguments of a registration.
pub(super) struct Start<'a> {
    pub(super) holder: &'a HolderId,
    pub(super) instance: Instance,
    pub(super) namespaces: &'a [(Namespace, u64)],
    pub(super) reserved: bool,
}

/// Registers a start. A repeated call of the same instance gets the same incarnation again, and
/// leaks nothing.
pub(super) fn register(
    term: &mut Term,
    now: Millis,
    start: Start<'_>,
    head_changed: &mut bool,
) -> Result<Answer, Refusal> {
    let Start { holder, instance, namespaces, reserved } = start;
    if !term.state.holders.contains_key(holder) && term.state.holders.len() >= term.limits.holders {
        term.forget_one(now);
    }
    check_room(term, holder, namespaces)?;
    if term.state.head.ledger.is_none() {
        term.state.head.ledger = LedgerId::new(format!("{holder}.{instance}")).ok();
        *head_changed = true;
    }
    for (namespace, capacity) in namespaces {
        *head_changed |= admit_namespace(term, now, namespace, *capacity);
    }
    let known = term.state.holders.get(holder);
    if let Some(record) = known.filter(|record| record.instance == instance) {
        // Answered only after a commit. A deposed leader that does not know it yet would report an
        // old seq, and the holder would get the block of a later seq a second time.
        *head_changed |= term.limits.guards(Guard::RegisterCommit);
        return Ok(answer(term, record.incarnation, record.last_seq));
    }
    let incarnation = known.map_or(Incarnation(1), |record| record.incarnation.next());
    let unsaved = known.and_then(|record| record.unsaved);
    leak_open_blocks(term, now, holder);
    let record = HolderRecord {
        as_of: Batch(0),
        unsaved,
        incarnation,
        instance,
        reserved,
        last_seq: Seq(0),
        last_reply: None,
        open: Vec::new(),
        // The first block is short again, so that a crash loop leaks little.
        last_len: BTreeMap::new(),
    };
    term.state.holders.insert(holder.clone(), record);
    term.state.touch(Key::Holder(holder.clone()));
    Ok(answer(term, incarnation, Seq(0)))
}

fn answer(term: &Term, incarnation: Incarnation, last_seq: Seq) -> Answer {
    let ledger = term.state.head.ledger.clone();
    Answer::Registered { incarnation, epoch: term.epoch, last_seq, ledger, mark: term.state.head.mark }
}

/// Checks a registration against the limits and the known capacities. It runs before the
/// registration itself, so that a refused one creates nothing.
fn check_room(term: &Term, holder: &HolderId, namespaces: &[(Namespace, u64)]) -> Result<(), Refusal> {
    let known = &term.state.head.namespaces;
    for (namespace, capacity) in namespaces {
        let lowers =
            |record: &&NamespaceRecord| *capacity < record.capacity && term.limits.guards(Guard::Capacity);
        if let Some(record) = known.get(namespace).filter(lowers) {
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

/// Creates a namespace or raises its capacity, and returns whether `head` changed.
fn admit_namespace(term: &mut Term, now: Millis, namespace: &Namespace, capacity: u64) -> bool {
    let Some(record) = term.state.head.namespaces.get_mut(namespace) else {
        let mut record = NamespaceRecord {
            capacity,
            high_watermark: 0,
            ceiling: 0,
            announced: 0,
            account: Account::default(),
        };
        ceiling::open_namespace(&term.limits, &mut record);
        term.state.head.namespaces.insert(namespace.clone(), record);
        return true;
    };
    let raises = capacity > record.capacity || !term.limits.guards(Guard::Capacity);
    if !raises {
        return false;
    }
    record.capacity = capacity;
    ceiling::raise_capacity(term, now, namespace);
    true
}
