//! The steps of reservations, as in `app::reservation`: blocks that no process mints
//! from.

use std::sync::Arc;

use holder::EntryId;
use issuer::core::{Answer, Refusal, Request, Returned};
use numbers::{Block, Seq, Span, StoreEpoch};

use super::{
    Step,
    calls::index,
    witness::Witness,
    world::{Holder, LateInsert, Part, Reservation, Reserved, entry, namespace, token},
};

impl Holder {
    /// Creates a reservation.
    pub(super) fn reserving(starts: u8, calls: u8) -> Self {
        let part = Part::Reserves(Reservation::default());
        Self { starts, calls, call: None, beat: None, is_raised: false, part }
    }

    pub(super) fn reservation(&self) -> Option<&Reservation> {
        match &self.part {
            Part::Mints(_) => None,
            Part::Reserves(reservation) => Some(reservation),
        }
    }

    /// Returns whether the holder was never started again. For a reservation this means that it is
    /// open.
    pub(super) fn is_first_start(&self) -> bool {
        self.starts == 1
    }

    /// Returns whether a reservation would ask for a block.
    pub(super) fn wants_block(&self, in_hand: usize) -> bool {
        let Some(reservation) = self.reservation() else { return false };
        let fresh = reservation.reserved.iter().filter(|block| !block.left.is_empty()).count();
        let is_idle = self.call.is_none() && reservation.allocated.is_none();
        reservation.incarnation.is_some() && is_idle && fresh < in_hand
    }
}

impl Step<'_> {
    fn reservation(&mut self, holder: usize) -> Option<&mut Reservation> {
        match &mut self.world.holders[holder].part {
            Part::Mints(_) => None,
            Part::Reserves(reservation) => Some(reservation),
        }
    }

    /// Returns whether a holder is a reservation that has not been given up.
    pub(super) fn is_open_reservation(&self, holder: usize) -> bool {
        self.system.is_reservation(holder) && self.world.holders[holder].is_first_start()
    }

    /// Registers a reservation. It keeps its blocks while it is open.
    pub(super) fn register(&mut self, holder: usize) {
        let (name, instance) = (self.name(holder), self.instance(holder));
        let namespaces = vec![(namespace(), self.system.bounds.capacity)];
        let reserved = self.is_open_reservation(holder);
        let request = Request::Register { holder: name, instance, namespaces, reserved };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// Asks for a block for a reservation.
    pub(super) fn allocate(&mut self, holder: usize) {
        let (name, wanted_len) = (self.name(holder), self.system.bounds.reserved_len);
        let Some(Reservation { incarnation: Some(incarnation), seq, .. }) = self.reservation(holder) else {
            return;
        };
        let request = Request::Allocate {
            holder: name,
            incarnation: *incarnation,
            seq: seq.next(),
            namespace: namespace(),
            wanted_len,
            store: StoreEpoch::new("1").expect("digits are valid"),
        };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// Delivers an answer to a reservation.
    pub(super) fn reservation_takes(&mut self, holder: usize, answer: Result<Answer, Refusal>) {
        let Some(reservation) = self.reservation(holder) else { return };
        match answer {
            Ok(Answer::Registered { incarnation, last_seq, .. }) => {
                (reservation.incarnation, reservation.seq) = (Some(incarnation), last_seq);
            }
            Ok(Answer::Allocated { block, leaked, .. }) => {
                reservation.seq = Seq(reservation.seq.0 + 1);
                reservation.allocated = Some((block.clone(), leaked));
                self.judge_hands(holder, &block);
                self.judge_reservation(holder);
            }
            // A new registration returns the last seq.
            Err(Refusal::UnknownHolder(_) | Refusal::Seq { .. }) => reservation.incarnation = None,
            _ => {}
        }
    }

    /// Enters a reservation's new block into the register. If the register refuses, the block is
    /// returned with all numbers burned and with the end of the registered numbers.
    pub(super) fn enter_reserved(&mut self, holder: usize) {
        let Some((block, _)) = self.reservation(holder).and_then(|state| state.allocated.take()) else {
            return;
        };
        let start = (index(holder), self.world.holders[holder].starts);
        let entry = entry(&block, start, EntryId(0));
        let mutant = self.system.mutant;
        let taken = Arc::make_mut(&mut self.world.database).register(entry, mutant);
        self.judge_refusal(taken, block.generation);
        if taken {
            let left = self.unused(block.span);
            if let Some(reservation) = self.reservation(holder) {
                reservation.reserved.push(Reserved { block, left });
            }
            return self.judge_register();
        }
        self.system.seen.note(Witness::RegisterRefused);
        self.return_refused(holder, block);
    }

    fn return_refused(&mut self, holder: usize, block: Block) {
        let registered_end = Some(self.world.database.registered_end());
        let Some(incarnation) = self.reservation(holder).and_then(|state| state.incarnation) else { return };
        let burned = block.span.len();
        let returned = Returned { block, used: 0, burned, unused: Vec::new(), registered_end };
        let request = Request::Return { holder: self.name(holder), incarnation, blocks: vec![returned] };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// Stores a link under the next number of a reservation.
    pub(super) fn fill(&mut self, holder: usize, late: bool) {
        let start = self.world.holders[holder].starts;
        let Some(reservation) = self.reservation(holder) else { return };
        let Some(block) = reservation.reserved.iter_mut().find(|block| !block.left.is_empty()) else {
            return;
        };
        let (number, generation) = (block.left.remove(0), block.block.generation);
        let url = token(generation, (index(holder), start), EntryId(0));
        let (holder, is_given_up) = (index(holder), false);
        let insert = LateInsert { holder, start, number, url, claim: None, is_given_up };
        if late { self.world.late_inserts.push(insert) } else { self.land(insert) }
    }

    pub(super) fn unused(&self, span: Span) -> Vec<u64> {
        self.world.database.unused(span).into_iter().flat_map(|gap| gap.start()..gap.end()).collect()
    }
}

pub(super) fn within(number: u64, span: Span) -> bool {
    (span.start()..span.end()).contains(&number)
}
