//! The steps of resolvers: the real core of a holder, on top of the modelled database.
//!
//! The core's clock has two readings: one for steps that follow at once, and one past every
//! back-off for a late wake. So a back-off costs no steps of the world's clock, and every order is
//! explored.

use std::sync::Arc;

use holder::{
    Call, Effect, EntryId, Event, KeyspaceNumbers, Refused, Spec, StoreAnswer, StoreCall, SupplyCore,
    calls::RegisterEntry,
};
use issuer::core::{self, Refusal};
use numbers::{Generation, Millis, Namespace, Span, StoreEpoch};

use super::{
    Step, System,
    calls::index,
    laws::Law,
    witness::Witness,
    world::{Holder, Minter, Part, last_token, namespace, token},
};
use crate::{Mutant, messages, stores::Entry};

/// The reading of the core's clock for steps that follow at once.
const AT_ONCE: Millis = Millis(0);
/// The reading of the core's clock past every back-off.
const LATE: Millis = Millis(1 << 40);

impl Holder {
    /// Creates a resolver at the start of its process.
    pub(super) fn minting(system: &System, starts: u8, calls: u8) -> Self {
        let (bounds, rules) = (&system.bounds, Mutant::rules(system.mutant));
        let spec = Spec { index: keyspace(), namespace: namespace(), capacity: bounds.capacity };
        // The next block is fetched at once if a holder may have several, else when the last one is
        // used up.
        let refill_permille = if bounds.in_hand > 1 { 0 } else { 1_000 };
        // The keyspace asks only on need, so asking for a block takes a late wake and never follows
        // at once.
        let mut keyspace = KeyspaceNumbers::new(refill_permille);
        keyspace.relinquish(AT_ONCE);
        let part = Part::Mints(Arc::new(Minter {
            core: SupplyCore::new(vec![spec], rules),
            keyspaces: vec![keyspace],
            asked: None,
        }));
        Self { starts, calls, call: None, beat: None, is_raised: false, part }
    }

    pub(super) fn minter(&self) -> Option<&Minter> {
        match &self.part {
            Part::Mints(minter) => Some(minter),
            Part::Reserves(_) => None,
        }
    }
}

impl Minter {
    /// Returns whether a number can be claimed.
    pub(super) fn has_numbers(&self) -> bool {
        self.keyspaces[0].buffer.in_hand() > 0
    }
}

fn keyspace() -> codes::KeyspaceIndex {
    codes::KeyspaceIndex::new(1).expect("1 is a valid keyspace index")
}

impl Step<'_> {
    pub(super) fn minter(&mut self, holder: usize) -> &mut Minter {
        match &mut self.world.holders[holder].part {
            Part::Mints(minter) => Arc::make_mut(minter),
            Part::Reserves(_) => unreachable!("a reservation has no core"),
        }
    }

    /// Wakes the core, at once or after every back-off.
    pub(super) fn wake(&mut self, holder: usize, late: bool) {
        self.step(holder, if late { LATE } else { AT_ONCE }, Event::Woken);
    }

    fn step(&mut self, holder: usize, now: Millis, event: Event) {
        let Minter { core, keyspaces, .. } = self.minter(holder);
        let effects = core.step(now, event, keyspaces);
        for effect in effects {
            match effect {
                Effect::Call(call) => self.send(holder, call),
                Effect::Store(StoreCall::Epoch) => {
                    let epoch = StoreAnswer::Epoch(StoreEpoch::new("1").expect("digits are valid"));
                    self.step(holder, AT_ONCE, Event::Stored(Some(epoch)));
                }
                Effect::Store(StoreCall::RaiseMark(_)) => {
                    self.step(holder, AT_ONCE, Event::Stored(Some(StoreAnswer::Raised(true))));
                }
                Effect::Store(call) => self.minter(holder).asked = Some(call),
                _ => {}
            }
        }
    }

    fn send(&mut self, holder: usize, call: Call) {
        self.judge_superseded(holder);
        self.allocations += u8::from(matches!(call, Call::Allocate { .. }));
        let (start, wanted_len) = ((self.name(holder), self.instance(holder)), self.system.bounds.block);
        let request = messages::request(start, call, |_| (namespace(), wanted_len));
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// Delivers the issuer's answer to the core.
    pub(super) fn answered(&mut self, holder: usize, answer: Result<core::Answer, Refusal>) {
        if let Ok(core::Answer::Allocated { block, .. }) = &answer {
            self.judge_hands(holder, block);
        }
        let answer = match answer {
            Ok(answer) => Ok(messages::answer(answer, self.system.bounds.holder_ttl_ms)),
            Err(refusal) => Err(self.refused(holder, &refusal)),
        };
        self.step(holder, AT_ONCE, Event::Answered(answer));
    }

    /// Converts a refusal as the resolver's client does.
    fn refused(&mut self, holder: usize, refusal: &Refusal) -> Refused {
        match refusal {
            Refusal::Exhausted { .. } => Refused::Exhausted,
            Refusal::InOtherHands { .. } => Refused::InOtherHands,
            Refusal::UnknownHolder(_) | Refusal::UnknownNamespace(_) | Refusal::Seq { .. } => {
                Refused::NotRegistered(String::new())
            }
            Refusal::CapacityShrunk { .. } => {
                // The operator raises the holder's capacity as well.
                self.system.seen.note(Witness::LoweringRefused);
                self.configure(holder);
                Refused::NotRegistered(String::new())
            }
            Refusal::Superseded { .. } => self.superseded(holder),
            _ => Refused::Other(String::new()),
        }
    }

    /// Records that a process hears of a later start of its holder, and returns what it makes of
    /// the refusal.
    fn superseded(&mut self, holder: usize) -> Refused {
        let process = self.process(holder);
        self.system.seen.note(Witness::Superseded);
        Arc::make_mut(&mut self.world.past).superseded.insert(process);
        Mutant::superseded(self.system.mutant)
    }

    /// Handles a beat that was refused because a later start of the holder has registered.
    pub(super) fn supersede(&mut self, holder: usize) {
        if let Refused::Superseded(reason) = self.superseded(holder) {
            let Minter { core, keyspaces, .. } = self.minter(holder);
            core.supersede(reason, keyspaces);
        }
    }

    /// Configures the holder with the raised capacity, so that it registers again.
    pub(super) fn configure(&mut self, holder: usize) {
        let raised = self.system.bounds.raised_capacity;
        self.world.holders[holder].is_raised = true;
        self.minter(holder).core.configure(std::iter::once(raised));
    }

    /// Drops the registration, because the issuer does not know it.
    pub(super) fn forget(&mut self, holder: usize) {
        let core = &mut self.minter(holder).core;
        if let Some(session) = core.session {
            core.forget(session);
        }
    }

    /// Executes the store call of the core.
    pub(super) fn execute_store(&mut self, holder: usize) {
        let Some(call) = self.minter(holder).asked.take() else { return };
        let enters = matches!(call, StoreCall::Register(_) | StoreCall::TakeOver(..));
        let answer = self.store(holder, call);
        let is_refused = enters && answer == StoreAnswer::Overlaps;
        let heard = if is_refused { Mutant::refusal(self.system.mutant) } else { answer };
        let before = self.blocks(holder);
        self.step(holder, AT_ONCE, Event::Stored(Some(heard)));
        let is_used = self.blocks(holder) > before;
        self.world.keep(Law::RefusedBlockUnused, !(is_refused && is_used));
        self.judge_register();
    }

    fn blocks(&self, holder: usize) -> usize {
        let minter = self.world.holders[holder].minter();
        minter.map_or(0, |minter| minter.keyspaces[0].buffer.blocks().count())
    }

    fn store(&mut self, holder: usize, call: StoreCall) -> StoreAnswer {
        match call {
            StoreCall::AdoptLedger(ledger) => StoreAnswer::Ledger(ledger),
            StoreCall::RaiseMark(_) => StoreAnswer::Raised(true),
            StoreCall::Epoch => StoreAnswer::Epoch(StoreEpoch::new("1").expect("digits are valid")),
            StoreCall::Register(asked) => self.enter_block(holder, &asked),
            StoreCall::TakeOver(asked, leaked) => self.take_over_block(holder, &asked, leaked),
            StoreCall::Unused(_, span) => self.read_unused(span),
            StoreCall::RegisteredEnd(_) => {
                let end = self.world.database.registered_end();
                let head = self.world.etcd.head().and_then(|head| head.namespaces.get(&namespace()));
                if head.is_some_and(|record| record.high_watermark < end) {
                    self.system.seen.note(Witness::WatermarkRepaired);
                }
                StoreAnswer::End(end)
            }
            StoreCall::Release(asked, kept) => {
                let (entry, mutant) = (self.entry(holder, &asked), self.system.mutant);
                let released = Arc::make_mut(&mut self.world.database).release(entry, &kept, mutant);
                if released { StoreAnswer::Released } else { StoreAnswer::Overlaps }
            }
        }
    }

    fn enter_block(&mut self, holder: usize, asked: &RegisterEntry) -> StoreAnswer {
        let (entry, mutant) = (self.entry(holder, asked), self.system.mutant);
        let taken = Arc::make_mut(&mut self.world.database).register(entry, mutant);
        self.judge_refusal(taken, asked.block.generation);
        self.entered(taken, Witness::RegisterRefused)
    }

    fn take_over_block(&mut self, holder: usize, asked: &RegisterEntry, leaked: Generation) -> StoreAnswer {
        let (entry, mutant) = (self.entry(holder, asked), self.system.mutant);
        let newer = self.newer_holds(entry.span, entry.generation);
        let database = Arc::make_mut(&mut self.world.database);
        let taken = database.take_over(entry, last_token(leaked), |_| false, mutant);
        self.world.keep(Law::RegisterForward, !(taken && newer));
        self.entered(taken, Witness::TakeOverRefused)
    }

    fn read_unused(&self, span: Span) -> StoreAnswer {
        let unused = self.world.database.unused(span);
        let numbers = unused.iter().map(|span| span.len()).sum::<u64>();
        let whole = numbers == span.len();
        self.system.seen.note(if whole { Witness::ReclaimedUnused } else { Witness::ReclaimedPartly });
        if self.system.bounds.reserved_len < self.system.bounds.block && span.len() == 1 {
            self.system.seen.note(Witness::ReservationReclaimed);
        }
        StoreAnswer::Unused(unused)
    }

    fn entered(&self, taken: bool, refused: Witness) -> StoreAnswer {
        if taken {
            return StoreAnswer::Entered;
        }
        self.system.seen.note(refused);
        StoreAnswer::Overlaps
    }

    /// Returns a holder with the number of its start.
    pub(super) fn process(&self, holder: usize) -> (u8, u8) {
        (index(holder), self.world.holders[holder].starts)
    }

    /// Returns the fencing token under which the register has a holder's block.
    pub(super) fn token(&self, holder: usize, generation: Generation, id: EntryId) -> u64 {
        let (process, id) = Mutant::entry(self.system.mutant, self.process(holder), id);
        token(generation, process, id)
    }

    fn entry(&self, holder: usize, asked: &RegisterEntry) -> Entry {
        let generation = self.token(holder, asked.block.generation, asked.entry);
        Entry { span: asked.block.span, generation }
    }

    /// Returns whether the register has one of the numbers under a newer allocation.
    fn newer_holds(&self, span: Span, token: u64) -> bool {
        let newer = self.world.database.entries().iter().filter(|entry| entry.generation > token);
        newer.into_iter().any(|entry| entry.span.overlaps(span))
    }

    /// Sends a beat, whose answer says whether another holder starves.
    pub(super) fn beat(&mut self, holder: usize) {
        let Minter { core, keyspaces, .. } = self.minter(holder);
        let Some(session) = core.session else { return };
        let beat = core.beat(session, keyspaces);
        let request = messages::keep_alive(self.name(holder), beat);
        self.world.holders[holder].beat = Some(self.call(holder, request));
    }

    /// Handles the answer to a beat.
    pub(super) fn heard(&mut self, holder: usize, starving: &[Namespace]) {
        let Minter { core, keyspaces, .. } = self.minter(holder);
        core.share(AT_ONCE, starving, keyspaces);
    }

    /// Gives up the holder's unclaimed numbers, as if another holder starved.
    pub(super) fn give_back(&mut self, holder: usize) {
        self.minter(holder).keyspaces[0].relinquish(AT_ONCE);
        self.wake(holder, false);
    }

    /// Ends the process and starts it again. Its calls and inserts stay under way.
    pub(super) fn crash(&mut self, holder: usize) {
        let Holder { starts, calls, .. } = self.world.holders[holder];
        self.world.holders[holder] = if self.system.is_reservation(holder) {
            Holder::reserving(starts + 1, calls)
        } else {
            Holder::minting(self.system, starts + 1, calls)
        };
    }
}
