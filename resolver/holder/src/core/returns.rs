//! Returns: blocks are released in the register, then returned to the issuer. What fails is tried
//! again at the next sweep.
//!
//! What cannot be sent is kept, or the issuer would count the block as open for as long as this
//! process lives. The issuer bounds how many blocks a holder has, and so how many wait here.

use super::{Effect, Millis, Note, RETURN_PAUSE_MS, Stage, Step};
use crate::{
    buffer::{Closed, RANGES_MAX},
    calls::{Answer, Call, Refused, Returning, StoreAnswer, StoreCall},
    keyspace::{Keyspace, Keyspaces},
    rules::Rule,
};

impl<K: Keyspaces> Step<'_, K> {
    /// Gives back what is used up.
    pub(super) fn give_back(&mut self) {
        if self.core.stopping {
            return self.give_all_back();
        }
        if self.core.session.is_none() {
            return self.idle();
        }
        self.collect(Keyspace::take_closed);
        self.sweep(self.core.returns.len());
    }

    /// Gives back everything, when no claim will come any more.
    pub(super) fn give_all_back(&mut self) {
        if self.core.session.is_none() {
            return self.end();
        }
        self.collect(Keyspace::take_all);
        self.sweep(self.core.returns.len());
    }

    fn end(&mut self) {
        self.core.stage = Stage::Ended;
        self.effects.push(Effect::Done);
    }

    fn collect(&mut self, take: fn(&mut Keyspace) -> Vec<Closed>) {
        for keyspace in 0..self.core.specs.len() {
            for closed in self.keyspaces.with(keyspace, take) {
                self.queue(Returning::closed(keyspace, closed));
            }
        }
    }

    /// Puts a block in line that did not come from a buffer.
    pub(super) fn push(&mut self, returning: Returning) {
        let numbers = returning.unsettled();
        self.keyspaces.with(returning.keyspace, |keyspace| keyspace.leaves(numbers));
        self.queue(returning);
    }

    /// Puts a block in line. At the end of the process there may be one with too many gaps for a
    /// call. It stays open with the issuer: nothing is burned for the sake of a message's length, and
    /// the gaps are found when the block is taken over.
    fn queue(&mut self, returning: Returning) {
        if !self.core.rules.keep(Rule::OnTheWay) {
            let numbers = returning.unsettled();
            self.keyspaces.with(returning.keyspace, |keyspace| keyspace.has_left(numbers));
        }
        if returning.closed.unused.len() > RANGES_MAX {
            self.note(Note::TooManyGaps(returning.closed.block.clone()));
            return self.gone(&returning);
        }
        self.core.returns.push_back(returning);
    }

    /// Its numbers are not in this holder's hands any more.
    fn gone(&mut self, returning: &Returning) {
        if self.core.rules.keep(Rule::OnTheWay) {
            let numbers = returning.unsettled();
            self.keyspaces.with(returning.keyspace, |keyspace| keyspace.has_left(numbers));
        }
    }

    /// Sends the first `left` of those that wait, each once; what fails waits on.
    fn sweep(&mut self, left: usize) {
        let next = if left > 0 { self.core.returns.pop_front() } else { None };
        let Some(returning) = next else { return self.swept() };
        if returning.released || !self.core.rules.keep(Rule::ReleaseFirst) {
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
            return self.end();
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
            // Somebody has taken it over meanwhile: it is not this holder's to give any more.
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
                // The registration is at fault, not the block: every other call would be refused too.
                if matches!(refused, Refused::Superseded(_) | Refused::NotRegistered(_)) {
                    return self.refused("return a block", refused, self.core.specs.len());
                }
                self.note(Note::NotReturned(refused));
            }
        }
        self.sweep(left);
    }
}
