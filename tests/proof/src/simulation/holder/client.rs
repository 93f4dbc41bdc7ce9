//! A client that finds the leader, and repeats a call until it is executed or refused for certain.

use std::rc::Rc;

use issuer::core::{Answer, Refusal, Request};

use super::Holder;
use crate::simulation::{checks::Note, issuers::issuer_at, summary::Happening};

/// The time limit of one try, in milliseconds.
pub(super) const TRY: u64 = 300;
const PAUSE: (u64, u64) = (20, 250);

/// A definite refusal.
pub(super) enum Refused {
    Exhausted,
    InOtherHands,
    NotRegistered,
    /// Any other refusal; the caller backs off and tries again.
    Other,
}

/// The next step after a try.
pub(super) enum Next {
    Done(Answer),
    Refused(Refused),
    Follow(usize),
    Again,
    /// The leader is busy or may not pass a ceiling yet: send the call to it again.
    Busy,
}

impl Holder {
    /// Repeats a call until there is a definite answer.
    pub(super) async fn call(&self, request: Request) -> Result<Answer, Refused> {
        self.call_until(request, u64::MAX).await
    }

    /// Repeats a call until there is a definite answer, or until the deadline. After the deadline
    /// the call may have been executed.
    pub(super) async fn call_until(&self, request: Request, deadline: u64) -> Result<Answer, Refused> {
        let request = Rc::new(request);
        let (mut pause, mut hops) = (PAUSE.0, 0);
        while self.desk.now() < deadline {
            match self.one_try(&request).await {
                Next::Done(answer) => return Ok(answer),
                Next::Refused(refused) => return Err(refused),
                Next::Follow(_) if hops < 3 => {
                    hops += 1;
                    continue;
                }
                Next::Follow(_) | Next::Again => self.state.borrow_mut().leader = None,
                Next::Busy => {}
            }
            hops = 0;
            self.desk.sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
        Err(Refused::Other)
    }

    /// Tries a call once, at the leader if it is known.
    pub(super) async fn one_try(&self, request: &Rc<Request>) -> Next {
        let issuer = self.choose();
        let answer = self.desk.call(issuer, request, TRY).await;
        let next = self.next(answer);
        match &next {
            Next::Done(_) => self.state.borrow_mut().leader = Some(issuer),
            Next::Follow(leader) => self.state.borrow_mut().leader = Some(*leader),
            Next::Refused(_) | Next::Again | Next::Busy => {}
        }
        next
    }

    fn choose(&self) -> usize {
        let mut state = self.state.borrow_mut();
        state.leader.unwrap_or_else(|| {
            state.turn += 1;
            state.turn % self.setup.issuers
        })
    }

    /// Maps an answer to the next step, as `issuer::grpc` with its statuses and the resolver's
    /// client do.
    fn next(&self, answer: Option<Result<Answer, Refusal>>) -> Next {
        let refusal = match answer {
            None => return Next::Again,
            Some(Ok(answer)) => return Next::Done(answer),
            Some(Err(refusal)) => refusal,
        };
        match refusal {
            Refusal::NotLeader(leader) => {
                leader.as_ref().and_then(issuer_at).map_or(Next::Again, Next::Follow)
            }
            Refusal::Unknown => Next::Again,
            Refusal::UnknownHolder(_) | Refusal::UnknownNamespace(_) | Refusal::Seq { .. } => {
                Next::Refused(Refused::NotRegistered)
            }
            Refusal::CapacityShrunk { .. } => {
                self.desk.note(Note::Outdated);
                Next::Refused(Refused::NotRegistered)
            }
            Refusal::InOtherHands { .. } => {
                self.desk.note(Note::Happened(Happening::InOtherHands, 1));
                Next::Refused(Refused::InOtherHands)
            }
            Refusal::Exhausted { namespace, capacity } => {
                self.desk.note(Note::Exhausted { namespace, capacity });
                Next::Refused(Refused::Exhausted)
            }
            Refusal::Superseded { .. } => {
                self.desk.note(Note::Superseded);
                Next::Refused(Refused::Other)
            }
            Refusal::CeilingReached { .. } => {
                self.desk.note(Note::Happened(Happening::CeilingWait, 1));
                Next::Busy
            }
            Refusal::Overloaded => Next::Busy,
            Refusal::TooMany(_) => Next::Refused(Refused::Other),
        }
    }
}
