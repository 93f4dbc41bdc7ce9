//! The steps of resolvers: the real core of a holder, on top of the modelled database.
//!
//! The core's clock has two readings: one for steps that follow at once, and one past every
//! back-off for a late wake. So a back-off costs no steps of the world's clock, and every order is
//! explored.

use std::sync::Arc;

use holder::{
    Answer, Call, Ceilings, Claim, Core, Effect, Event, Fate, Keyspace, Moment, Refused, Registered, Row,
    Spec, StoreAnswer, StoreCall, Verdict, ceilings::Told,
};
use issuer::core::{self, Refusal, Request, Returned};
use numbers::{Instance, Mark, Millis, Namespace, StoreEpoch};

use super::{
    Step, System,
    calls::{index, name},
    laws::Law,
    witness::Witness,
    world::{Holder, LateInsert, Minter, Part, entry, last_token, namespace, token},
};
use crate::Mutant;

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
        let mut keyspace = Keyspace::new(refill_permille);
        keyspace.relinquish(AT_ONCE);
        let part = Part::Mints(Arc::new(Minter {
            core: Core::new(vec![spec], rules),
            keyspaces: vec![keyspace],
            ceilings: Ceilings::new(rules),
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
        self.keyspaces[0].buffer().in_hand() > 0
    }
}

fn keyspace() -> codes::KeyspaceIndex {
    codes::KeyspaceIndex::new(1).expect("1 is a valid keyspace index")
}

impl System {
    /// Returns the time on a holder's clock, which may be slower than the issuers'.
    fn shows(&self, now: Millis) -> Moment {
        let shown = Millis(now.0 * (1_000 - self.bounds.slower) / 1_000);
        Moment { monotonic: shown, wall: shown }
    }

    /// Returns the ceiling that a holder trusts now.
    pub(super) fn fresh_ceiling(&self, holder: &Holder, now: Millis) -> Option<u64> {
        holder.minter()?.ceilings.fresh(keyspace(), self.shows(now))
    }
}

impl Step<'_> {
    fn minter(&mut self, holder: usize) -> &mut Minter {
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
        let request = match call {
            Call::Register { namespaces } => {
                let instance = Instance::new(self.world.holders[holder].starts.to_string());
                let instance = instance.expect("digits are valid");
                Request::Register { holder: name(holder), instance, namespaces, reserved: false }
            }
            Call::Allocate { incarnation, seq, store, .. } => {
                self.allocations += 1;
                let wanted_len = self.system.bounds.block;
                let holder = name(holder);
                Request::Allocate { holder, incarnation, seq, namespace: namespace(), wanted_len, store }
            }
            Call::Return { incarnation, closed, registered_end } => {
                let holder::Closed { block, used, burned, unused, .. } = closed;
                let returned = Returned { block, used, burned, unused, registered_end };
                debug_assert_eq!(returned.check(), Ok(()), "the holder's account");
                Request::Return { holder: name(holder), incarnation, blocks: vec![returned] }
            }
        };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// Delivers the issuer's answer to the core.
    pub(super) fn answered(&mut self, holder: usize, answer: Result<core::Answer, Refusal>) {
        let answer = match answer {
            Ok(core::Answer::Registered { incarnation, last_seq, .. }) => {
                let (holder_ttl_ms, ledger, mark) = (self.system.bounds.holder_ttl_ms, None, Mark(0));
                Ok(Answer::Registered(Registered { incarnation, last_seq, holder_ttl_ms, ledger, mark }))
            }
            Ok(core::Answer::Allocated { block, leaked, store, .. }) => {
                self.judge_hands(holder, &block);
                Ok(Answer::Allocated { block, leaked, store: Some(store) })
            }
            Ok(_) => Ok(Answer::Returned),
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
            Refusal::Superseded { .. } => Refused::Superseded(String::new()),
            _ => Refused::Other { code: String::new(), message: String::new() },
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
        if let Some(session) = core.session() {
            core.forget(session);
        }
    }

    /// Executes the store call of the core.
    pub(super) fn execute_store(&mut self, holder: usize) {
        let Some(call) = self.minter(holder).asked.take() else { return };
        let answer = self.store(holder, call);
        self.step(holder, AT_ONCE, Event::Stored(Some(answer)));
        self.judge_register();
    }

    fn store(&mut self, holder: usize, call: StoreCall) -> StoreAnswer {
        let (mutant, instance) = (self.system.mutant, self.instance(holder));
        let database = Arc::make_mut(&mut self.world.database);
        match call {
            StoreCall::AdoptLedger(ledger) => StoreAnswer::Ledger(ledger),
            StoreCall::RaiseMark(_) => StoreAnswer::Raised(true),
            StoreCall::Epoch => StoreAnswer::Epoch(StoreEpoch::new("1").expect("digits are valid")),
            StoreCall::Register(asked) => {
                let taken = database.register(entry(&asked.block, instance, asked.entry), mutant);
                self.entered(taken, Witness::RegisterRefused)
            }
            StoreCall::TakeOver(asked, leaked) => {
                let (entry, leaked) = (entry(&asked.block, instance, asked.entry), last_token(leaked));
                let newer = self.newer_holds(entry.span, entry.generation);
                let database = Arc::make_mut(&mut self.world.database);
                let taken = database.take_over(entry, leaked, |_| false, mutant);
                self.world.keep(Law::RegisterForward, !(taken && newer));
                self.entered(taken, Witness::TakeOverRefused)
            }
            StoreCall::Unused(_, span) => {
                let unused = database.unused(span);
                let numbers = unused.iter().map(|span| span.len()).sum::<u64>();
                let whole = numbers == span.len();
                self.system.seen.note(if whole {
                    Witness::ReclaimedUnused
                } else {
                    Witness::ReclaimedPartly
                });
                if self.system.bounds.reserved_len < self.system.bounds.block && span.len() == 1 {
                    self.system.seen.note(Witness::ReservationReclaimed);
                }
                StoreAnswer::Unused(unused)
            }
            StoreCall::RegisteredEnd(_) => {
                let end = database.registered_end();
                let head = self.world.etcd.head().and_then(|head| head.namespaces.get(&namespace()));
                if head.is_some_and(|record| record.high_watermark < end) {
                    self.system.seen.note(Witness::WatermarkRepaired);
                }
                StoreAnswer::End(end)
            }
            StoreCall::Release(asked, kept) => {
                let released = database.release(entry(&asked.block, instance, asked.entry), &kept);
                if released { StoreAnswer::Released } else { StoreAnswer::Overlaps }
            }
        }
    }

    fn entered(&self, taken: bool, refused: Witness) -> StoreAnswer {
        if taken {
            return StoreAnswer::Entered;
        }
        self.system.seen.note(refused);
        StoreAnswer::Overlaps
    }

    fn instance(&self, holder: usize) -> (u8, u8) {
        (index(holder), self.world.holders[holder].starts)
    }

    /// Returns whether the register has one of the numbers under a newer allocation.
    fn newer_holds(&self, span: numbers::Span, token: u64) -> bool {
        let newer = self.world.database.entries().iter().filter(|entry| entry.generation > token);
        newer.into_iter().any(|entry| entry.span.overlaps(span))
    }

    /// Sends a beat, whose answer brings the ceiling.
    pub(super) fn beat(&mut self, holder: usize) {
        let Minter { core, keyspaces, .. } = self.minter(holder);
        let Some(session) = core.session() else { return };
        let beat = core.beat(session, keyspaces);
        let request = Request::KeepAlive {
            holder: name(holder),
            incarnation: beat.incarnation,
            last_seq: beat.last_seq,
            progress: beat.progress,
            mark: Mark(0),
        };
        self.world.holders[holder].beat = Some(self.call(holder, request));
    }

    /// Handles the answer to a beat.
    pub(super) fn heard(
        &mut self,
        holder: usize,
        sent: Millis,
        ceilings: &[(Namespace, u64)],
        starving: &[Namespace],
    ) {
        let (sent, holder_ttl_ms) = (self.system.shows(sent), self.system.bounds.holder_ttl_ms);
        let registered_end = self.world.database.registered_end();
        let Minter { core, keyspaces, ceilings: trusted, .. } = self.minter(holder);
        core.share(AT_ONCE, starving, keyspaces);
        if let Some((_, ceiling)) = ceilings.first() {
            trusted.trust(keyspace(), Told { ceiling: *ceiling, registered_end, sent, holder_ttl_ms });
        }
        self.judge_ceiling(holder);
    }

    /// Gives up the holder's unclaimed numbers, as if another holder starved.
    pub(super) fn give_back(&mut self, holder: usize) {
        self.minter(holder).keyspaces[0].relinquish(AT_ONCE);
        self.wake(holder, false);
    }

    fn claim(&mut self, holder: usize) -> Option<(LateInsert, Claim)> {
        let (owner, start) = self.instance(holder);
        let claim = self.minter(holder).keyspaces[0].claim().ok().flatten()?;
        let url = token(claim.generation, (owner, start), claim.entry);
        let insert = LateInsert { holder: owner, start, number: claim.number, url, claim: None };
        Some((insert, claim))
    }

    /// Claims a number and inserts a link.
    pub(super) fn insert(&mut self, holder: usize) {
        if let Some((insert, claim)) = self.claim(holder) {
            self.land(LateInsert { claim: Some(claim), ..insert });
        }
    }

    /// Claims a number and leaves its insert under way.
    pub(super) fn insert_late(&mut self, holder: usize) {
        if let Some((insert, claim)) = self.claim(holder) {
            self.world.late_inserts.push(LateInsert { claim: Some(claim), ..insert });
            self.world
                .late_inserts
                .sort_unstable_by_key(|late| (late.holder, late.start, late.number, late.url));
        }
    }

    /// Inserts a link, and loses the reply. The holder then reads the row, and takes it for its own
    /// if the register has the number under its own entry. Two creators may store the same long
    /// URL, so the row alone proves nothing.
    pub(super) fn insert_in_doubt(&mut self, holder: usize) {
        let Some((insert, claim)) = self.claim(holder) else { return };
        Arc::make_mut(&mut self.world.database).insert(insert.number, insert.url);
        let verdict = match Verdict::of_row(&claim, Row::Same, Mutant::rules(self.system.mutant)) {
            Verdict::AskRegister => {
                let token = token(claim.generation, self.instance(holder), claim.entry);
                Verdict::of_register(self.world.database.holds(insert.number, token))
            }
            verdict => verdict,
        };
        self.minter(holder).keyspaces[0].settle(claim, Verdict::fate(Some(verdict)));
        if verdict == Verdict::Ours {
            self.system.seen.note(Witness::DoubtResolved);
            self.acknowledge(insert.number);
        }
    }

    /// Executes an insert in the database. It is acknowledged if the start that sent it still runs.
    pub(super) fn land(&mut self, insert: LateInsert) {
        let LateInsert { holder, start, number, url, claim } = insert;
        let inserted = Arc::make_mut(&mut self.world.database).insert(number, url);
        if !inserted {
            self.system.seen.note(Witness::NumberTaken);
        }
        let owner = usize::from(holder);
        let apart = !self.is_reserved_by_another(number, owner);
        self.world.keep(Law::ReservationUnused, apart || !inserted);
        if inserted && self.system.is_reservation(owner) {
            self.system.seen.note(Witness::ReservationFilled);
        }
        if self.world.holders[owner].starts != start {
            return;
        }
        if let Some(claim) = claim {
            self.minter(owner).keyspaces[0].settle(claim, Fate::Used);
        }
        if inserted {
            self.acknowledge(number);
        }
    }

    /// Acknowledges a link to its creator.
    fn acknowledge(&mut self, number: u64) {
        let first = Arc::make_mut(&mut self.world.past).acknowledged.insert(number);
        self.world.keep(Law::AcknowledgedOnce, first);
        let now = self.world.now;
        let fresh = self.world.holders.iter().filter_map(|holder| self.system.fresh_ceiling(holder, now));
        let fresh: Vec<u64> = fresh.collect();
        if !fresh.is_empty() {
            self.system.seen.note(Witness::CeilingTrusted);
        }
        let below = fresh.into_iter().all(|ceiling| number < ceiling);
        self.world.keep(Law::NoFalseAbove, below);
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
