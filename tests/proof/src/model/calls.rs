//! The calls of holders: sending, repetition and answers.

use std::sync::Arc;

use issuer::core::{Answer, Refusal, Request};
use numbers::{HolderId, Instance};

use super::{
    Step,
    world::{Call, CallId, Part},
};

/// The names of the holders.
const NAMES: [&str; 3] = ["a", "b", "c"];

impl Step<'_> {
    /// Sends a call for the first time.
    pub(super) fn call(&mut self, holder: usize, request: Request) -> Call {
        let state = &mut self.world.holders[holder];
        state.calls += 1;
        let (number, request) = (state.calls, Arc::new(request));
        self.world.calls.insert((index(holder), number), (Arc::clone(&request), 1));
        Call { number, request, answers: Vec::new() }
    }

    /// Sends one more copy of a call whose holder has lost patience.
    pub(super) fn resend(&mut self, id: CallId) {
        if let Some(call) = self.waiting(id) {
            let request = Arc::clone(&call.request);
            self.world.calls.entry(id).or_insert((request, 0)).1 += 1;
        }
    }

    /// Returns the call, if its caller still waits for it.
    pub(super) fn waiting(&mut self, (holder, number): CallId) -> Option<&mut Call> {
        let holder = &mut self.world.holders[usize::from(holder)];
        holder.call.iter_mut().chain(&mut holder.beat).find(|call| call.number == number)
    }

    /// Returns the name of a holder, which other processes may share.
    pub(super) fn name(&self, holder: usize) -> HolderId {
        let name = if self.system.bounds.one_name { NAMES[0] } else { NAMES[holder] };
        HolderId::new(name).expect("letters are valid")
    }

    /// Returns the instance id of a holder's present start.
    pub(super) fn instance(&self, holder: usize) -> Instance {
        let starts = self.world.holders[holder].starts;
        Instance::new(format!("{holder}-{starts}")).expect("digits and a hyphen are valid")
    }

    /// Delivers an answer to its caller.
    pub(super) fn take(&mut self, (holder, number): CallId, answer: usize) {
        let holder = usize::from(holder);
        let state = &mut self.world.holders[holder];
        let is_beat = state.beat.as_ref().is_some_and(|beat| beat.number == number);
        let Some(mut call) = (if is_beat { state.beat.take() } else { state.call.take() }) else { return };
        let answer = call.answers.swap_remove(answer);
        if let Err(Refusal::Exhausted { capacity, .. }) = &answer {
            self.judge_exhausted(*capacity);
        }
        match &self.world.holders[holder].part {
            Part::Reserves(_) => self.reservation_takes(holder, answer),
            Part::Mints(_) if is_beat => match answer {
                Ok(Answer::Alive { starving, .. }) => self.heard(holder, &starving),
                Err(Refusal::UnknownHolder(_)) => self.forget(holder),
                Err(Refusal::Superseded { .. }) => self.supersede(holder),
                _ => {}
            },
            Part::Mints(_) => self.answered(holder, answer),
        }
    }
}

pub(super) fn index(holder: usize) -> u8 {
    u8::try_from(holder).expect("a world has at most three holders")
}
