//! Returns: blocks are released in the register, then returned to the issuer. A failed return is
//! tried again at the next sweep.
//!
//! Blocks that cannot be sent stay in the queue. If they were dropped, the issuer would count them
//! as open for as long as this process lives. The issuer bounds the number of blocks per holder,
//! and thereby the length of the queue.

use super::{Effect, Millis, Note, RETURN_PAUSE_MS, Stage, Step};
use crate::{
    buffer::{Buffer, Closed, RANGES_MAX},
    calls::{Answer, Call, Refused, Returning, StoreAnswer, StoreCall},
    keyspace::Keyspaces,
    safety_rule::SafetyRule,
};

impl<K: Keyspaces> Step<'_, K> {
    pub(super) fn give_back(&mut self) {
        if self.core.stopping {
            return self.give_all_back();
        }
        if self.core.session.is_none() {
            return self.idle();
        }
        self.collect(Buffer::take_closed);
        self.sweep(self.core.returns.len());
    }

    /// Returns all blocks, once no further claim will come.
    pub(super) fn give_all_back(&mut self) {
        if self.core.session.is_none() {
            return self.end();
        }
        self.collect(Buffer::take_all);
        self.sweep(self.core.returns.len());
    }

    fn end(&mut self) {
        self.core.stage = Stage::Ended;
        self.effects.push(Effect::Done);
    }

    fn collect(&mut self, take: fn(&mut Buffer) -> Vec<Closed>) {
        for keyspace in 0..self.core.specs.len() {
            for closed in self.keyspaces.with(keyspace, |keyspace| take(&mut keyspace.buffer)) {
                let released = closed.unused.is_empty();
                self.push(Returning { keyspace, closed, released, registered_end: None });
            }
        }
    }

    /// Queues a block for its return, and counts its numbers as this holder's until the issuer has
    /// them. At shutdown a block may have too many gaps for a call. It stays open with the issuer:
    /// no number is burned only because of a message's length, and the gaps are found when the
    /// block is taken over.
    pub(super) fn push(&mut self, returning: Returning) {
        if returning.closed.unused.len() > RANGES_MAX {
            return self.note(Note::TooManyGaps(returning.closed.block));
        }
        if self.core.rules.keep(SafetyRule::OnTheWay) {
            let numbers = returning.closed.unsettled();
            self.keyspaces.with(returning.keyspace, |keyspace| keyspace.returning += numbers);
        }
        self.core.returns.push_back(returning);
    }

    /// Stops counting the numbers of a block that this holder no longer has.
    fn gone(&mut self, returning: &Returning) {
        if self.core.rules.keep(SafetyRule::OnTheWay) {
            let numbers = returning.closed.unsettled();
            self.keyspaces.with(returning.keyspace, |keyspace| keyspace.returning -= numbers);
        }
    }

    /// Sends the first `left` queued blocks, once each. A block that fails goes to the back of the
    /// queue.
    fn sweep(&mut self, left: usize) {
        let next = if left > 0 { self.core.returns.pop_front() } else { None };
        let Some(returning) = next else { return self.swept() };
        if returning.released || !self.core.rules.keep(SafetyRule::ReleaseFirst) {
            return self.send(returning, left - 1);
        }
        let Closed { block, entry, .. } = &returning.closed;
        let entry = self.entry(returning.keyspace, block.clone(), *entry);
        let call = StoreCall::Release(entry, returning.closed.kept());
        self.core.stage = Stage::Releasing(returning, left - 1);
        self.effects.push(Effect::Store(call));
    }

    fn swept(&mut self) {
        if !self.core.stopping {
            return self.idle();
        }
        if self.core.returns.is_empty() {
            // If the stop came during a sweep of used-up blocks, the blocks in hand are still here.
            self.collect(Buffer::take_all);
            if self.core.returns.is_empty() {
                return self.end();
            }
            return self.sweep(self.core.returns.len());
        }
        self.core.stage = Stage::Idle;
        self.wait(Millis(self.now.0 + RETURN_PAUSE_MS), false);
    }

    pub(super) fn released(&mut self, mut returning: Returning, left: usize, answer: Option<StoreAnswer>) {
        match answer {
            Some(StoreAnswer::Released) => {
                returning.released = true;
                self.send(returning, left);
            }
            // Another holder has taken the block over meanwhile, so it is no longer this holder's
            // to return.
            Some(StoreAnswer::Overlaps) => {
                self.gone(&returning);
                self.sweep(left);
            }
            _ => {
                self.core.returns.push_back(returning);
                self.sweep(left);
            }
        }
    }

    fn send(&mut self, returning: Returning, left: usize) {
        let (closed, registered_end) = (returning.closed.clone(), returning.registered_end);
        let incarnation = self.core.incarnation;
        let call = Call::Return { incarnation, closed, registered_end };
        self.call(Stage::GivingBack(returning, left), call);
    }

    pub(super) fn returned(&mut self, returning: Returning, left: usize, answer: Result<Answer, Refused>) {
        match answer {
            Ok(_) => self.gone(&returning),
            Err(refused) => {
                self.core.returns.push_back(returning);
                // The registration is at fault, not the block: every other call would be refused
                // too.
                if matches!(refused, Refused::Superseded(_) | Refused::NotRegistered(_)) {
                    return self.refused("return a block", refused, self.core.specs.len());
                }
                self.note(Note::NotReturned(refused));
            }
        }
        self.sweep(left);
    }
}
