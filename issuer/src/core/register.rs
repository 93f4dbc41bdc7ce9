//! Registration of a start: it gets an incarnation, and the earlier start's blocks are leaked.

use std::collections::BTreeMap;

use numbers::{Batch, HolderId, Incarnation, Instance, LedgerId, Millis, Namespace, Seq};

use crate::core::{
    Account, Answer, HolderRecord, Key, NamespaceRecord, Refusal, ceiling, guard::Guard,
    leader_state::LeaderState, leak::leak_open_blocks,
};

pub(super) struct Start<'a> {
    pub(super) holder: &'a HolderId,
    pub(super) instance: Instance,
    pub(super) namespaces: &'a [(Namespace, u64)],
    pub(super) reserved: bool,
}

/// Registers a start. A repeated call gets the same incarnation, and leaks nothing.
pub(super) fn register(leader: &mut LeaderState, now: Millis, start: Start<'_>) -> Result<Answer, Refusal> {
    let Start { holder, instance, namespaces, reserved } = start;
    if !leader.state.holders.contains_key(holder) && leader.state.holders.len() >= leader.limits.holders {
        leader.forget_one(now);
    }
    check_room(leader, holder, namespaces)?;
    if leader.state.head.ledger.is_none() {
        leader.state.head.ledger = LedgerId::new(format!("{holder}.{instance}")).ok();
        leader.state.head_changed = true;
    }
    for (namespace, capacity) in namespaces {
        admit_namespace(leader, now, namespace, *capacity);
    }
    let known = leader.state.holders.get(holder);
    if let Some(record) = known.filter(|record| record.instance == instance) {
        // Answered only after a commit. A deposed leader that does not know it yet would report an
        // old seq, and the holder would get the block of a later seq a second time.
        leader.state.head_changed |= leader.limits.guards(Guard::RegisterCommit);
        return Ok(answer(leader, record.incarnation, record.last_seq));
    }
    let incarnation = known.map_or(Incarnation(1), |record| record.incarnation.next());
    let unsaved = known.and_then(|record| record.unsaved);
    leak_open_blocks(leader, now, holder);
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
    leader.state.holders.insert(holder.clone(), record);
    leader.state.touch(Key::Holder(holder.clone()));
    Ok(answer(leader, incarnation, Seq(0)))
}

fn answer(leader: &LeaderState, incarnation: Incarnation, last_seq: Seq) -> Answer {
    let ledger = leader.state.head.ledger.clone();
    Answer::Registered { incarnation, epoch: leader.epoch, last_seq, ledger, mark: leader.state.head.mark }
}

/// Checks a registration against the limits and the known capacities. It runs before the
/// registration itself, so that a refused one creates nothing.
fn check_room(
    leader: &LeaderState,
    holder: &HolderId,
    namespaces: &[(Namespace, u64)],
) -> Result<(), Refusal> {
    let known = &leader.state.head.namespaces;
    for (namespace, capacity) in namespaces {
        let lowers =
            |record: &&NamespaceRecord| *capacity < record.capacity && leader.limits.guards(Guard::Capacity);
        if let Some(record) = known.get(namespace).filter(lowers) {
            let current = record.capacity;
            return Err(Refusal::CapacityShrunk { namespace: namespace.clone(), current, got: *capacity });
        }
    }
    let new = namespaces.iter().filter(|(namespace, _)| !known.contains_key(namespace)).count();
    if known.len() + new > leader.limits.namespaces {
        return Err(Refusal::TooMany(format!("namespaces: at most {}", leader.limits.namespaces)));
    }
    if !leader.state.holders.contains_key(holder) && leader.state.holders.len() >= leader.limits.holders {
        return Err(Refusal::TooMany(format!("holders: at most {}", leader.limits.holders)));
    }
    Ok(())
}

/// Creates a namespace or raises its capacity.
fn admit_namespace(leader: &mut LeaderState, now: Millis, namespace: &Namespace, capacity: u64) {
    let Some(record) = leader.state.head.namespaces.get_mut(namespace) else {
        let record = NamespaceRecord {
            capacity,
            high_watermark: 0,
            ceiling: capacity,
            announced: capacity,
            account: Account::default(),
        };
        leader.state.head.namespaces.insert(namespace.clone(), record);
        leader.state.head_changed = true;
        return;
    };
    if capacity > record.capacity || !leader.limits.guards(Guard::Capacity) {
        record.capacity = capacity;
        ceiling::lift(leader, now, namespace);
        leader.state.head_changed = true;
    }
}
