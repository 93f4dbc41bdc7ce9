//! Refills: a block is allocated, entered into the register, and then minted from.
//!
//! A leaked block is taken over from the generation it was leaked under, and the database is asked
//! which of its numbers are unused. If the database has changed to another history by then, the
//! first insert is refused and the block is burned, because links that were lost with the old
//! history may be public codes.

use std::sync::Arc;

use numbers::{Generation, Span, StoreEpoch};

use super::{Arrival, Effect, Millis, Note, REST_MS, SCARCE_REST_MS, Stage, Step};
use crate::{
    buffer::{Closed, Entered, EntryId},
    calls::{Answer, Call, History, Refused, Registered, Returning, StoreAnswer, StoreCall},
    keyspace::Keyspaces,
    safety_rule::SafetyRule,
};

impl<K: Keyspaces> Step<'_, K> {
    /// Asks for a block for the first keyspace, from `from` on, that wants one.
    pub(super) fn refill(&mut self, from: usize) {
        let wants = |step: &mut Self, keyspace: usize| {
            let rests = step.core.rests[keyspace].is_some_and(|until| step.now < until);
            let now = step.now;
            !rests && step.keyspaces.with(keyspace, |keyspace| keyspace.wants_block(|| now))
        };
        if self.core.session.is_some() && !self.core.stopping {
            for keyspace in from..self.core.specs.len() {
                if wants(self, keyspace) {
                    return self.ask(Stage::Refilling(keyspace, None), StoreCall::Epoch);
                }
            }
        }
        self.give_back();
    }

    pub(super) fn allocate(&mut self, keyspace: usize, store: StoreEpoch) {
        let Some(session) = self.core.session else { return self.refill(keyspace) };
        let (incarnation, seq) = (session.incarnation, self.core.seq.next());
        let stage = Stage::Refilling(keyspace, Some(Arc::new(store.clone())));
        self.call(stage, Call::Allocate { keyspace, incarnation, seq, store });
    }

    pub(super) fn allocated(&mut self, keyspace: usize, asked: History, answer: Result<Answer, Refused>) {
        let refused = match answer {
            Ok(Answer::Allocated { block, leaked, store }) => {
                self.core.seq = self.core.seq.next();
                if block.namespace == self.core.specs[keyspace].namespace {
                    // An issuer of an earlier release omits the history.
                    let history = store.map_or(asked, Arc::new);
                    let entry = self.next_entry();
                    return self.enter(Arrival { keyspace, block, entry, leaked, history }, None);
                }
                Refused::Malformed("a block of the namespace that was asked for")
            }
            Ok(_) => Refused::Malformed("a block"),
            Err(Refused::Exhausted) => {
                self.keyspaces.with(keyspace, |keyspace| keyspace.exhausted = true);
                self.effects.push(Effect::WakeCreators(keyspace));
                self.note(Note::Exhausted(keyspace));
                return self.skip(keyspace, REST_MS);
            }
            Err(Refused::InOtherHands) => {
                let now = self.now;
                self.keyspaces.with(keyspace, |keyspace| keyspace.starve(now));
                // The issuer learns that this holder has no numbers left, and the others hear of it
                // in the answers to their beats.
                self.effects.push(Effect::BeatNow);
                self.note(Note::InOtherHands(keyspace));
                return self.skip(keyspace, SCARCE_REST_MS);
            }
            Err(refused) => refused,
        };
        self.refused("allocate a block", refused, keyspace + 1);
    }

    /// Puts a keyspace into back-off and continues with the next one.
    fn skip(&mut self, keyspace: usize, rest_ms: u64) {
        self.core.rests[keyspace] = Some(Millis(self.now.0 + rest_ms));
        self.refill(keyspace + 1);
    }

    pub(super) fn next_entry(&mut self) -> EntryId {
        self.core.entries = EntryId(self.core.entries.0 + 1);
        self.core.entries
    }

    pub(super) fn enter(&mut self, arrival: Arrival, missed: Option<Registered>) {
        if !self.core.rules.keep(SafetyRule::RegisterFirst) {
            return self.add(arrival, missed, None);
        }
        let entry = self.entry(arrival.keyspace, arrival.block.clone(), arrival.entry);
        let leaked = match arrival.leaked {
            Some(_) if !self.core.rules.keep(SafetyRule::LeakedGeneration) => {
                Some(Generation(arrival.block.generation.0 + 1_000))
            }
            leaked => leaked,
        };
        let call = match leaked {
            None => StoreCall::Register(entry),
            Some(leaked) => StoreCall::TakeOver(entry, leaked),
        };
        self.ask(Stage::Entering(arrival, missed), call);
    }

    /// Handles the store's answers while a block is entered, one after the other.
    pub(super) fn entering(&mut self, arrival: Arrival, missed: Option<Registered>, answer: StoreAnswer) {
        let index = self.core.specs[arrival.keyspace].index;
        match answer {
            StoreAnswer::Entered if arrival.leaked.is_none() => self.add(arrival, missed, None),
            StoreAnswer::Entered => {
                let span = arrival.block.span;
                self.ask(Stage::Entering(arrival, missed), StoreCall::Unused(index, span));
            }
            StoreAnswer::Unused(unused) => {
                let numbers = unused.iter().map(|span| span.len()).sum();
                self.note(Note::TakenOver(arrival.block.clone(), numbers));
                self.add(arrival, missed, Some(unused));
            }
            StoreAnswer::Overlaps => {
                let (block, leaked) = (arrival.block.clone(), arrival.leaked.is_some());
                self.note(Note::Overlaps { block, leaked });
                self.ask(Stage::Entering(arrival, missed), StoreCall::RegisteredEnd(index));
            }
            StoreAnswer::End(end) => self.refuse(arrival, missed, end),
            _ => self.core.stage = Stage::Entering(arrival, missed),
        }
    }

    fn add(&mut self, arrival: Arrival, missed: Option<Registered>, left: Option<Vec<Span>>) {
        let Arrival { keyspace, block, entry, history, .. } = arrival;
        let entered = Entered { block, entry, history };
        self.keyspaces.with(keyspace, |keyspace| keyspace.add(entered, left));
        self.effects.push(Effect::WakeCreators(keyspace));
        self.note(Note::Refilled(keyspace));
        self.has_entered(keyspace, missed);
    }

    /// Queues a block that overlaps the register. None of its numbers is used, and the issuer is
    /// told the end of the registered numbers.
    fn refuse(&mut self, arrival: Arrival, missed: Option<Registered>, registered_end: u64) {
        let Arrival { keyspace, block, entry, .. } = arrival;
        let burned = block.span.len();
        let closed = Closed { block, entry, used: 0, burned, unused: Vec::new() };
        let registered_end = (registered_end > 0).then_some(registered_end);
        self.push(Returning { keyspace, closed, released: true, registered_end });
        self.has_entered(keyspace, missed);
    }

    fn has_entered(&mut self, keyspace: usize, missed: Option<Registered>) {
        if let Some(registered) = missed {
            return self.in_session(&registered);
        }
        self.core.entered = self.core.seq;
        self.refill(keyspace);
    }
}
