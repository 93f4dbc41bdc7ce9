//! Checks of the laws on blocks in hand, the register and reservations.

use std::collections::BTreeMap;

use holder::{Claim, EntryId};
use numbers::{Block, Generation, Span};

use super::{
    Step,
    calls::index,
    laws::{Law, Whereabouts},
    reservation::within,
    witness::Witness,
    world::{Holder, entry},
};

/// Returns the blocks that are allocated to a holder and not in its hands yet.
fn arriving(holder: &Holder) -> impl Iterator<Item = &Block> {
    let reserved = holder.reservation().and_then(|reservation| reservation.allocated.as_ref());
    let minted = holder.minter().and_then(|minter| minter.core.arriving());
    reserved.map(|(block, _)| block).into_iter().chain(minted)
}

/// Returns the blocks in a holder's hands, with their unused numbers.
fn in_hand(holder: &Holder) -> Vec<(&Block, Vec<Span>)> {
    if let Some(reservation) = holder.reservation() {
        let one = |number: &u64| Span::new(*number, 1).expect("a span of one number is valid");
        let blocks = reservation.reserved.iter();
        return blocks.map(|reserved| (&reserved.block, reserved.left.iter().map(one).collect())).collect();
    }
    let minter = holder.minter().into_iter();
    let blocks = minter.flat_map(|minter| minter.keyspaces[0].buffer.blocks());
    blocks.map(|(block, _, left)| (block, left.collect())).collect()
}

/// Returns the blocks that a holder has entered into the register, with their entries.
fn entries(holder: &Holder) -> Vec<(&Block, EntryId)> {
    if let Some(reservation) = holder.reservation() {
        return reservation.reserved.iter().map(|reserved| (&reserved.block, EntryId(0))).collect();
    }
    let minter = holder.minter().into_iter();
    let blocks = minter.flat_map(|minter| minter.keyspaces[0].buffer.blocks());
    blocks.map(|(block, entry, _)| (block, entry)).collect()
}

fn overlap(left: &[Span], span: Span) -> bool {
    left.iter().any(|left| left.overlaps(span))
}

impl Step<'_> {
    /// Checks I1 against the blocks of other holders. Numbers that a holder has used stay its own.
    /// Its unused ones must not be allocated to another holder, unless the older allocation had
    /// leaked.
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

    /// Returns the blocks of a reservation.
    pub(super) fn reserved(&self, holder: usize) -> impl Iterator<Item = &Block> {
        let reservation = self.world.holders[holder].reservation().into_iter();
        reservation.flat_map(|reservation| {
            let allocated = reservation.allocated.iter().map(|(block, _)| block);
            allocated.chain(reservation.reserved.iter().map(|reserved| &reserved.block))
        })
    }

    /// Returns whether an open reservation other than this holder has the number.
    pub(super) fn is_reserved_by_another(&self, number: u64, owner: usize) -> bool {
        let others = (0..self.world.holders.len()).filter(|holder| *holder != owner);
        let mut open = others.filter(|holder| self.is_open_reservation(*holder));
        open.any(|holder| self.reserved(holder).any(|block| within(number, block.span)))
    }

    /// Checks that a reservation's numbers are unused for certain, and as many as it asked for.
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

    /// Checks I1 in the register: a number is held under at most one token.
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

    /// Checks that a claimed number is in the register under the claim's own entry. Another holder
    /// may have taken over a block that has leaked.
    pub(super) fn judge_claim(&mut self, holder: usize, claim: &Claim) {
        let token = self.token(holder, claim.generation, claim.entry);
        let registered = self.world.database.holds(claim.number, token);
        let may_lack = self.world.past.restored || self.world.past.leaked.contains(&claim.generation);
        self.world.keep(Law::ClaimedWhenRegistered, registered || may_lack);
        self.judge_superseded(holder);
    }

    /// Checks that the register accepts a new block, because its numbers were never registered or
    /// were released before they were returned.
    pub(super) fn judge_refusal(&mut self, taken: bool, generation: Generation) {
        let past = &self.world.past;
        let may_refuse = past.restored || past.leaked.contains(&generation);
        self.world.keep(Law::NewBlockAccepted, taken || may_refuse);
    }

    /// Checks that a process does nothing more after it was told of a later start of its holder.
    pub(super) fn judge_superseded(&mut self, holder: usize) {
        let is_superseded = self.world.past.superseded.contains(&self.process(holder));
        self.world.keep(Law::SupersededStops, !is_superseded);
    }

    /// Checks that every number has a link, is reserved or has an insert under way, because a
    /// holder heard that all are used. `capacity` is the one that it heard of; it may have been
    /// raised since.
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
        // A ledger restored from a backup burns numbers that it has forgotten.
        self.world.keep(Law::ExhaustedWhenUsed, !unused || self.world.past.restored);
    }
}
