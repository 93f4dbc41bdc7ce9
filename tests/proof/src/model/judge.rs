//! What must hold of what holders have, heard and stored.

use std::collections::BTreeMap;

use holder::EntryId;
use numbers::{Block, Span};

use super::{
    Step,
    calls::index,
    laws::{Law, Whereabouts},
    reservation::within,
    witness::Witness,
    world::{Holder, entry, namespace},
};

/// A block that is allocated to a holder and not in its hands yet.
fn arriving(holder: &Holder) -> impl Iterator<Item = &Block> {
    let reserved = holder.reservation().and_then(|reservation| reservation.allocated.as_ref());
    let minted = holder.minter().and_then(|minter| minter.core.arriving());
    reserved.map(|(block, _)| block).into_iter().chain(minted)
}

/// The blocks in a holder's hands, with the numbers that it has not used.
fn in_hand(holder: &Holder) -> Vec<(&Block, Vec<Span>)> {
    if let Some(reservation) = holder.reservation() {
        let one = |number: &u64| Span::new(*number, 1).expect("one number");
        let blocks = reservation.reserved.iter();
        return blocks.map(|reserved| (&reserved.block, reserved.left.iter().map(one).collect())).collect();
    }
    let minter = holder.minter().into_iter();
    let blocks = minter.flat_map(|minter| minter.keyspaces[0].buffer().blocks());
    blocks.map(|(block, _, left)| (block, left.collect())).collect()
}

/// The blocks that a holder has entered into the register.
fn entries(holder: &Holder) -> Vec<(&Block, EntryId)> {
    if let Some(reservation) = holder.reservation() {
        return reservation.reserved.iter().map(|reserved| (&reserved.block, EntryId(0))).collect();
    }
    let minter = holder.minter().into_iter();
    let blocks = minter.flat_map(|minter| minter.keyspaces[0].buffer().blocks());
    blocks.map(|(block, entry, _)| (block, entry)).collect()
}

fn overlap(left: &[Span], span: Span) -> bool {
    left.iter().any(|left| left.overlaps(span))
}

impl Step<'_> {
    /// I1 by what holders were given. Numbers that a holder has used are its own for ever; those
    /// that it has left must be no one else's, unless the older allocation had leaked.
    pub(super) fn judge_hands(&mut self, holder: usize, new: &Block) {
        if self.world.past.restored {
            return;
        }
        let rivals = self.world.holders.iter().enumerate().flat_map(|(other, state)| {
            let waiting = arriving(state).filter(move |_| other != holder);
            waiting.chain(
                in_hand(state)
                    .into_iter()
                    .filter(|(_, left)| overlap(left, new.span))
                    .map(|(block, _)| block),
            )
        });
        let older = rivals
            .filter(|rival| rival.span.overlaps(new.span))
            .map(|rival| rival.generation.min(new.generation));
        let kept = older.into_iter().all(|generation| self.world.past.leaked.contains(&generation));
        self.world.keep(Law::HandsDisjoint, kept);
    }

    /// The blocks of a reservation.
    pub(super) fn reserved(&self, holder: usize) -> impl Iterator<Item = &Block> {
        let reservation = self.world.holders[holder].reservation().into_iter();
        reservation.flat_map(|reservation| {
            let allocated = reservation.allocated.iter().map(|(block, _)| block);
            allocated.chain(reservation.reserved.iter().map(|reserved| &reserved.block))
        })
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
        let reservation = self.world.holders[holder].reservation();
        let Some((block, leaked)) = reservation.and_then(|state| state.allocated.clone()) else { return };
        let mut late = self.world.late_inserts.iter();
        let is_late = late.any(|claim| within(claim.number, block.span));
        let unused = self.unused(block.span).len() as u64 == block.span.len();
        self.world.keep(Law::ReservationUnused, leaked.is_none() && unused && !is_late);
        let wanted_len = self.system.bounds.reserved_len;
        self.world.keep(Law::ReservationLen, block.span.len() == wanted_len);
    }

    /// I1 by the register: a number is held under at most one token.
    pub(super) fn judge_register(&mut self) {
        let mut tokens = BTreeMap::<u64, u64>::new();
        let mut kept = true;
        for (other, state) in self.world.holders.iter().enumerate() {
            for (block, id) in entries(state) {
                let entry = entry(block, (index(other), state.starts), id);
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
        let Some(ceiling) = self.system.fresh_ceiling(&self.world.holders[holder], self.world.now) else {
            return;
        };
        let none_above = self.world.past.acknowledged.range(ceiling..).next().is_none();
        self.world.keep(Law::NoFalseAbove, none_above);
        let head = self.world.etcd.head();
        let record = head.and_then(|head| head.namespaces.get(&namespace()));
        let watermark = record.map_or(0, |record| record.high_watermark);
        self.world.keep(Law::NothingAllocatedAbove, watermark <= ceiling);
    }
}
