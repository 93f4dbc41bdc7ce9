//! A model checker of the number protocol: it explores every schedule of a few small systems that
//! run the real cores.
//!
//! 1. The machines are values: issuers ([`issuer::core::Core`]) and holders ([`holder::Core`]), the
//!    same code as in the daemons, and the two stores of [`crate::stores`]. The network is part of
//!    the state. A call, a transaction or an answer may stay under way without end, which models
//!    its loss. A paused machine is one whose steps do not occur.
//! 2. Every step is an [`Action`]. stateright takes all of them in all orders, within the
//!    [`Bounds`] of a world.
//! 3. A [`Law`] must hold in every state, and a [`Witness`] must occur in some schedule.
//! 4. One guard at a time can be switched off ([`Mutant`]); then some world must break a law.
//!
//! Rejected: one world with everything in it. It has too many states to visit, so a schedule of six
//! steps that matters may be left out. Small worlds are explored to their last state.
//!
//! Left out: more than one namespace and other histories of the database. They change which numbers
//! are taken and not how they are kept apart.

mod action;
mod aim;
pub mod bounds;
mod calls;
mod check;
mod holder;
mod inserts;
mod judge;
pub mod laws;
mod reservation;
mod server;
mod start;
pub mod witness;
mod world;

use std::sync::Arc;

use issuer::core::Event;
use numbers::Millis;
use stateright::{Model, Property};

pub use action::Action;
pub use aim::aimed_at;
pub use bounds::Bounds;
pub use check::{Broken, Outcome, check};
pub use laws::Law;
pub use witness::Witness;
pub use world::World;

use crate::Mutant;
use witness::Seen;
use world::{Flight, Minter, Part, Reservation};

/// A world with its bounds, explored with all guards or with one off.
#[derive(Clone, Debug)]
pub struct System {
    bounds: Bounds,
    mutant: Option<Mutant>,
    seen: Arc<Seen>,
}

/// A step in progress.
struct Step<'a> {
    system: &'a System,
    world: World,
    /// The count of allocations that holders have requested in this step.
    allocations: u8,
}

impl Step<'_> {
    fn run(&mut self, action: Action) {
        match action {
            Action::Vacate => Arc::make_mut(&mut self.world.etcd).vacate(),
            Action::Elect { server, early } => {
                self.world.left.elections -= 1;
                self.elect(server, early);
            }
            Action::ReadEarly(server) => {
                self.world.left.early_reads -= 1;
                self.world.servers[server].early = Some(Arc::new(self.world.etcd.snapshot()));
            }
            Action::Depose(server) => self.depose(server),
            Action::Execute(server) => self.execute(server),
            Action::Reply(server) => self.reply(server),
            Action::TimeOut(server) => {
                self.world.left.unknown -= 1;
                self.time_out(server);
            }
            Action::ExecuteLate(index) => self.execute_late(index),
            Action::Tick(server) => self.tell(server, Event::Tick),
            Action::Pass => {
                self.world.left.time_steps -= 1;
                self.world.now = Millis(self.world.now.0 + self.system.bounds.step_ms);
            }
            Action::Deliver { call, server } => self.deliver(call, server),
            Action::Resend(call) => {
                self.world.left.resends -= 1;
                self.resend(call);
            }
            Action::Take { call, answer } => self.take(call, answer),
            other => self.run_holder(other),
        }
    }

    fn run_holder(&mut self, action: Action) {
        match action {
            Action::Wake { holder, late } => self.wake(holder, late),
            Action::Store(holder) => self.execute_store(holder),
            Action::Register(holder) => self.register(holder),
            Action::Allocate(holder) => {
                self.allocations += 1;
                self.allocate(holder);
            }
            Action::Beat(holder) => {
                self.world.left.beats -= 1;
                self.beat(holder);
            }
            Action::Enter(holder) => self.enter_reserved(holder),
            Action::Insert(holder) => {
                self.world.left.inserts -= 1;
                self.store_link(holder, false);
            }
            Action::InsertLate(holder) => {
                self.world.left.late_inserts -= 1;
                self.store_link(holder, true);
            }
            Action::InsertInDoubt(holder) => {
                self.world.left.doubtful_inserts -= 1;
                self.insert_in_doubt(holder);
            }
            Action::InsertAbsent(holder) => {
                self.world.left.absent_inserts -= 1;
                self.insert_absent(holder);
            }
            Action::Land(index) => {
                let insert = self.world.late_inserts.remove(index);
                self.land(insert);
            }
            Action::GiveBack(holder) => {
                self.world.left.returns -= 1;
                self.give_back(holder);
            }
            Action::Crash(holder) => {
                self.world.left.starts -= 1;
                self.crash(holder);
            }
            Action::Raise(holder) => {
                self.world.left.raises -= 1;
                self.configure(holder);
                self.wake(holder, true);
            }
            Action::BackUp => self.world.backup = Some(Arc::clone(&self.world.etcd)),
            Action::Restore => {
                self.world.left.restores -= 1;
                self.restore();
            }
            _ => unreachable!("the other actions are `run`'s"),
        }
    }
}

impl System {
    /// Returns whether a holder is a reservation.
    fn is_reservation(&self, holder: usize) -> bool {
        holder + self.bounds.reservations >= self.bounds.holders
    }

    /// Creates a system with all guards, or with one off.
    #[must_use]
    pub fn new(bounds: Bounds, mutant: Option<Mutant>) -> Self {
        Self { bounds, mutant, seen: Arc::default() }
    }

    fn election_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let left = &world.left;
        if left.elections > 0 && world.etcd.leader.is_some() {
            actions.push(Action::Vacate);
        }
        for (server, state) in world.servers.iter().enumerate() {
            let leads = state.epoch.is_some();
            if leads && world.etcd.leader != state.epoch {
                actions.push(Action::Depose(server));
            }
            if !leads && world.etcd.leader.is_none() && left.elections > 0 {
                actions.push(Action::Elect { server, early: false });
                if state.early.is_some() {
                    actions.push(Action::Elect { server, early: true });
                }
            }
            if !leads && state.early.is_none() && left.early_reads > 0 && left.elections > 0 {
                actions.push(Action::ReadEarly(server));
            }
        }
        if left.restores > 0 && world.etcd.leader.is_some() {
            actions.push(if world.backup.is_some() { Action::Restore } else { Action::BackUp });
        }
    }

    fn server_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (server, state) in world.servers.iter().enumerate() {
            match state.flight {
                Some(Flight::Sent(_)) => actions.push(Action::Execute(server)),
                Some(Flight::Executed(..)) => actions.push(Action::Reply(server)),
                None => {}
            }
            if state.flight.is_some() && world.left.unknown > 0 {
                actions.push(Action::TimeOut(server));
            }
            if state.epoch.is_some() {
                if self.bounds.ticks && self.bounds.budget.time_steps > 0 {
                    actions.push(Action::Tick(server));
                }
                actions.extend(world.calls.keys().map(|call| Action::Deliver { call: *call, server }));
            }
        }
        actions.extend((0..world.late_commits.len()).map(Action::ExecuteLate));
        if world.left.time_steps > 0 {
            actions.push(Action::Pass);
        }
    }

    fn holder_actions(&self, world: &World, holder: usize, actions: &mut Vec<Action>) {
        let (state, left) = (&world.holders[holder], &world.left);
        for call in state.call.iter().chain(&state.beat) {
            let id = (u8::try_from(holder).expect("a world has at most three holders"), call.number);
            if left.resends > 0 {
                actions.push(Action::Resend(id));
            }
            actions.extend((0..call.answers.len()).map(|answer| Action::Take { call: id, answer }));
        }
        if left.starts > 0 {
            actions.push(Action::Crash(holder));
        }
        match &state.part {
            Part::Reserves(reservation) => self.reservation_actions(world, (holder, reservation), actions),
            Part::Mints(minter) => Self::minter_actions(world, (holder, minter), actions),
        }
    }

    fn reservation_actions(
        &self,
        world: &World,
        (holder, reservation): (usize, &Reservation),
        actions: &mut Vec<Action>,
    ) {
        let (state, left) = (&world.holders[holder], &world.left);
        if reservation.incarnation.is_none() && state.call.is_none() {
            actions.push(Action::Register(holder));
        }
        if left.allocations > 0 && state.wants_block(self.bounds.in_hand) && state.is_first_start() {
            actions.push(Action::Allocate(holder));
        }
        // A refused block is returned by a call, so the previous call must have ended.
        if reservation.allocated.is_some() && state.call.is_none() {
            actions.push(Action::Enter(holder));
        }
        if reservation.reserved.iter().any(|block| !block.left.is_empty()) {
            actions.extend((left.inserts > 0).then_some(Action::Insert(holder)));
            actions.extend((left.late_inserts > 0).then_some(Action::InsertLate(holder)));
        }
    }

    fn minter_actions(world: &World, (holder, minter): (usize, &Minter), actions: &mut Vec<Action>) {
        let (state, left) = (&world.holders[holder], &world.left);
        if minter.asked.is_some() {
            actions.push(Action::Store(holder));
        }
        let is_waiting = minter.core.is_waiting();
        let is_registered = minter.core.session.is_some();
        if is_waiting {
            actions.extend([false, true].map(|late| Action::Wake { holder, late }));
        }
        let is_lost = minter.core.lost.is_some();
        if left.beats > 0 && is_registered && !is_lost && state.beat.is_none() {
            actions.push(Action::Beat(holder));
        }
        if left.raises > 0 && is_registered && is_waiting && !state.is_raised {
            actions.push(Action::Raise(holder));
        }
        if minter.has_numbers() {
            actions.extend((left.inserts > 0).then_some(Action::Insert(holder)));
            actions.extend((left.late_inserts > 0).then_some(Action::InsertLate(holder)));
            actions.extend((left.doubtful_inserts > 0).then_some(Action::InsertInDoubt(holder)));
            actions.extend((left.absent_inserts > 0).then_some(Action::InsertAbsent(holder)));
            let may_return = left.returns > 0 && is_registered && is_waiting;
            actions.extend(may_return.then_some(Action::GiveBack(holder)));
        }
    }
}

impl Model for System {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![start::world(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.election_actions(world, actions);
        self.server_actions(world, actions);
        for holder in 0..world.holders.len() {
            self.holder_actions(world, holder, actions);
        }
        actions.extend((0..world.late_inserts.len()).map(Action::Land));
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut step = Step { system: self, world: before.clone(), allocations: 0 };
        step.run(action);
        let Step { mut world, allocations, .. } = step;
        // A step in which a core asks for more blocks than this world permits is dropped.
        world.left.allocations = world.left.allocations.checked_sub(allocations)?;
        let idle = matches!(action, Action::Tick(_) | Action::Wake { .. }) && world == *before;
        (!idle).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::properties()
    }
}
