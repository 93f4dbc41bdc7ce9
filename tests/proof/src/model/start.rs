//! The initial state: one issuer leads, and every holder is registered. How a system gets there is
//! explored after crashes and elections.

use std::sync::Arc;

use issuer::core::Core;
use numbers::Millis;

use super::{
    Bounds, Step, System,
    world::{Holder, Server, World},
};
use crate::Mutant;

/// Returns the initial state of a system.
pub(super) fn world(system: &System) -> World {
    let limits = Mutant::limits(system.mutant, system.bounds.limits());
    let server = || Server { core: Arc::new(Core::new(limits)), epoch: None, flight: None, early: None };
    let holder = |holder| {
        if system.is_reservation(holder) { Holder::reserving(1, 0) } else { Holder::minting(system, 1, 0) }
    };
    let world = World {
        etcd: Arc::default(),
        backup: None,
        database: Arc::default(),
        servers: (0..system.bounds.issuers).map(|_| server()).collect(),
        holders: (0..system.bounds.holders).map(holder).collect(),
        late_commits: Vec::new(),
        calls: std::collections::BTreeMap::new(),
        late_inserts: Vec::new(),
        now: Millis(0),
        left: system.bounds.budget,
        past: Arc::default(),
    };
    // In the initial state no call or transaction may be left under way.
    let bounds = Bounds { prompt_commits: true, prompt_answers: true, ..system.bounds };
    let prompt = System { bounds, ..system.clone() };
    let mut step = Step { system: &prompt, world, allocations: 0 };
    step.elect(0, false);
    let mut holders: Vec<_> = (0..system.bounds.holders).collect();
    if system.bounds.one_name {
        holders.reverse();
    }
    for holder in holders {
        if system.is_reservation(holder) {
            step.register(holder);
        } else {
            step.wake(holder, false);
        }
        let calls: Vec<_> = step.world.calls.keys().copied().collect();
        calls.into_iter().for_each(|call| step.deliver(call, 0));
    }
    step.world
}
