//! The inserts of resolvers: claims from the real keyspace, and the real verdict on an insert in
//! doubt.

use std::sync::Arc;

use holder::{Claim, Fate, Row, Verdict};

use super::{
    Step,
    laws::Law,
    witness::Witness,
    world::{LateInsert, token},
};
use crate::Mutant;

impl Step<'_> {
    /// Stores a link under the next number of a holder, at once or later.
    pub(super) fn store_link(&mut self, holder: usize, late: bool) {
        if self.system.is_reservation(holder) {
            self.fill(holder, late);
        } else if late {
            self.insert_late(holder);
        } else {
            self.insert(holder);
        }
    }

    fn claim(&mut self, holder: usize) -> Option<(LateInsert, Claim)> {
        let (owner, start) = self.process(holder);
        let claim = self.minter(holder).keyspaces[0].claim().ok().flatten()?;
        self.judge_claim(holder, &claim);
        let url = token(claim.generation, (owner, start), claim.entry);
        let (number, is_given_up) = (claim.number, false);
        let insert = LateInsert { holder: owner, start, number, url, claim: None, is_given_up };
        Some((insert, claim))
    }

    /// Claims a number and inserts a link.
    fn insert(&mut self, holder: usize) {
        if let Some((insert, claim)) = self.claim(holder) {
            self.land(LateInsert { claim: Some(claim), ..insert });
        }
    }

    /// Claims a number and leaves its insert under way.
    fn insert_late(&mut self, holder: usize) {
        if let Some((insert, claim)) = self.claim(holder) {
            self.leave_under_way(LateInsert { claim: Some(claim), ..insert });
        }
    }

    fn leave_under_way(&mut self, insert: LateInsert) {
        self.world.late_inserts.push(insert);
        self.world.late_inserts.sort_unstable_by_key(|late| (late.holder, late.start, late.number, late.url));
    }

    /// Inserts a link, and loses the reply. The holder then reads the row, and takes it for its own
    /// if the register has the number under its own entry. Two creators may store the same long
    /// URL, so the row alone proves nothing.
    pub(super) fn insert_in_doubt(&mut self, holder: usize) {
        let Some((insert, claim)) = self.claim(holder) else { return };
        Arc::make_mut(&mut self.world.database).insert(insert.number, insert.url);
        self.resolve(holder, claim, Row::Same);
    }

    /// Inserts a link, and loses patience. The holder finds no row, because the insert is still
    /// under way.
    pub(super) fn insert_absent(&mut self, holder: usize) {
        let Some((insert, claim)) = self.claim(holder) else { return };
        let row = if self.world.database.link(claim.number).is_none() { Row::Absent } else { Row::Same };
        self.leave_under_way(LateInsert { is_given_up: true, ..insert });
        self.resolve(holder, claim, row);
    }

    /// Judges an insert in doubt by the row that was read, and settles its claim.
    fn resolve(&mut self, holder: usize, claim: Claim, row: Row) {
        let (mutant, number) = (self.system.mutant, claim.number);
        let verdict = match Verdict::of_row(&claim, Mutant::row(mutant, row), Mutant::rules(mutant)) {
            Verdict::AskRegister => {
                let token = self.token(holder, claim.generation, claim.entry);
                Verdict::of_register(self.world.database.holds(number, token))
            }
            verdict => verdict,
        };
        let fate = Mutant::fate(mutant, Verdict::fate(Some(verdict)));
        self.minter(holder).keyspaces[0].buffer.settle(claim, fate);
        if verdict == Verdict::Ours {
            self.system.seen.note(Witness::DoubtResolved);
            self.acknowledge(number);
        }
    }

    /// Executes an insert in the database. It is acknowledged if the start that sent it still runs
    /// and waits for it.
    pub(super) fn land(&mut self, insert: LateInsert) {
        let LateInsert { holder, start, number, url, claim, is_given_up } = insert;
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
        if inserted && is_given_up {
            self.system.seen.note(Witness::BurnedThenStored);
        }
        if self.world.holders[owner].starts != start || is_given_up {
            return;
        }
        if let Some(claim) = claim {
            self.minter(owner).keyspaces[0].buffer.settle(claim, Fate::Used);
        }
        if inserted {
            self.acknowledge(number);
        }
    }

    /// Acknowledges a link to its creator.
    fn acknowledge(&mut self, number: u64) {
        let stored = self.world.database.link(number).is_some();
        self.world.keep(Law::AcknowledgedWhenStored, stored);
        let first = Arc::make_mut(&mut self.world.past).acknowledged.insert(number);
        self.world.keep(Law::AcknowledgedOnce, first);
    }
}
