//! What must hold of what holders have, heard and stored.

use std::collections::BTreeMap;

use numbers::{Block, Span};

use super::{
    Step,
    holder::{index, within},
    laws::{Law, Whereabouts},
    witness::Witness,
    world::{Held, namespace},
};

impl Step<'_> {
    /// I1 by what holders were given. Numbers that a holder has used are its own for ever; those
    /// that it has left must be no one else's, unless the older allocation had leaked.
    pub(super) fn judge_hands(&mut self, holder: usize) {
        if self.world.past.restored {
            return;
        }
        let Some((new, _)) = &self.world.holders[holder].allocated else { return };
        let rest = |held: &&Held| held.left.iter().any(|number| within(*number, new.span));
        let rivals = self.world.holders.iter().enumerate().flat_map(|(other, state)| {
            let waiting = state.allocated.iter().filter(move |_| other != holder).map(|(block, _)| block);
            state.held.iter().filter(rest).map(|held| &held.block).chain(waiting)
        });
        let older = rivals
            .filter(|rival| rival.span.overlaps(new.span))
            .map(|rival| rival.generation.min(new.generation));
        let kept = older.into_iter().all(|generation| self.world.past.leaked.contains(&generation));
        self.world.keep(Law::HandsDisjoint, kept);
    }

    /// The blocks of a reservation.
    pub(super) fn reserved(&self, holder: usize) -> impl Iterator<Item = &Block> {
        let state = &self.world.holders[holder];
        let allocated = state.allocated.iter().map(|(block, _)| block);
        allocated.chain(state.held.iter().map(|held| &held.block))
    }

    /// Whether an open reservation has the number, other than this holder.
    pub(super) fn is_reserved_by_another(&self, number: u64, owner: usize) -> bool {
        let others = (0..self.world.holders.len()).filter(|holder| *holder != owner);
        let mut open = others.filter(|holder| self.is_open_reservation(*holder));
        open.any(|holder| self.reserved(holder).any(|block| within(number, block.span)))
    }

    /// A reservation's numbers are surely unused, and not more than it asked for.
    pub(super) fn judge_reservation(&mut self, holder: usize) {
        if !self.is_open_reservation(holder) {
            return;
        }
        let Some((block, leaked)) = self.world.holders[holder].allocated.clone() else { return };
        let mut late = self.world.late_inserts.iter();
        let is_late = late.any(|claim| within(claim.number, block.span));
        let unused = self.unused(block.span).len() as u64 == block.span.len();
        self.world.keep(Law::ReservationUnused, leaked.is_none() && unused && !is_late);
        let wanted_len = self.wanted_len(holder);
        self.world.keep(Law::ReservationLen, block.span.len() == wanted_len);
    }

    /// I1 by the register: a number is held under at most one token.
    pub(super) fn judge_register(&mut self) {
        let mut tokens = BTreeMap::<u64, u64>::new();
        let mut kept = true;
        for (other, state) in self.world.holders.iter().enumerate() {
            for held in &state.held {
                let entry = Held::entry(&held.block, index(other), state.starts);
                for number in entry.span.start()..entry.span.end() {
                    if self.world.database.holds(number, entry.generation) {
                        kept &= tokens
                            .insert(number, entry.generation)
                            .is_none_or(|token| token == entry.generation);
                    }
                }
            }
        }
        self.world.keep(Law::RegisterDisjoint, kept);
    }

    /// A holder has heard that every number is used: then each has a link, is reserved, or an
    /// insert of one is under way. The capacity may have been raised since.
    pub(super) fn judge_exhausted(&mut self, capacity: u64) {
        let capacity = Span::new(0, capacity).expect("a namespace has numbers");
        let under_way = |number: &u64| self.world.late_inserts.iter().any(|claim| claim.number == *number);
        // A block may be on its way to its reservation.
        let reserved = Whereabouts::of(&self.world.etcd).reserved;
        let is_reserved = |number: &u64| reserved.iter().any(|span| within(*number, *span));
        let unused = self.unused(capacity).iter().any(|number| !under_way(number) && !is_reserved(number));
        if !reserved.is_empty() {
            self.system.seen.note(Witness::ExhaustedBesideReservation);
        }
        self.system.seen.note(Witness::ExhaustedHeard);
        // A ledger from a backup burns numbers that it has forgotten.
        self.world.keep(Law::ExhaustedWhenUsed, !unused || self.world.past.restored);
    }

    /// A holder has heard of a ceiling: what lies above it must not be in use already.
    pub(super) fn judge_ceiling(&mut self, holder: usize) {
        let Some(ceiling) = self.world.holders[holder].fresh_ceiling(self.world.now) else { return };
        let none_above = self.world.past.acknowledged.range(ceiling..).next().is_none();
        self.world.keep(Law::NoFalseAbove, none_above);
        let head = self.world.etcd.head();
        let record = head.and_then(|head| head.namespaces.get(&namespace()));
        let watermark = record.map_or(0, |record| record.high_watermark);
        self.world.keep(Law::NothingAllocatedAbove, watermark <= ceiling);
    }
}
