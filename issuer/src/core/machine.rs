//! The state machine: a follower, or the leader of a term.

use numbers::{Epoch, Millis};

use super::{
    event::{Effect, Event},
    limits::Limits,
    request::{Leader, Refusal},
    term::Term,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    Following(Option<Leader>),
    Leading(Box<Term>),
}

/// The issuer's state machine: a follower, or the leader of one term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    limits: Limits,
    role: Role,
}

impl Core {
    /// Creates the core of a follower that knows no leader.
    pub fn new(limits: Limits) -> Self {
        Self { limits, role: Role::Following(None) }
    }

    /// Handles one event. The shell must run the returned effects in their order.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Elected { epoch, snapshot } => {
                self.follow(None, &mut effects);
                let term = Term::take_over(self.limits, now, epoch, snapshot, &mut effects);
                self.role = Role::Leading(Box::new(term));
            }
            Event::Following(leader) => self.follow(leader, &mut effects),
            Event::Arrived(ticket, request) => match &mut self.role {
                Role::Following(leader) => {
                    effects.push(Effect::Answer(ticket, Err(Refusal::NotLeader(leader.clone()))));
                }
                Role::Leading(term) => term.arrived(now, ticket, request, &mut effects),
            },
            Event::Committed(outcome) => {
                if let Role::Leading(term) = &mut self.role
                    && !term.committed(now, outcome, &mut effects)
                {
                    self.follow(None, &mut effects);
                    effects.push(Effect::Abdicate);
                }
            }
            Event::Tick => {
                if let Role::Leading(term) = &mut self.role {
                    term.tick(now, &mut effects);
                }
            }
            Event::Woke => {
                if let Role::Leading(term) = &mut self.role {
                    term.leader.woke(now);
                }
            }
            Event::Retire => {
                if let Role::Leading(term) = &mut self.role {
                    term.retire(&mut effects);
                }
            }
        }
        effects
    }

    /// Returns the epoch of the current term once its take-over has committed.
    pub fn serving(&self) -> Option<Epoch> {
        match &self.role {
            Role::Leading(term) if term.serving => Some(term.leader.epoch),
            _ => None,
        }
    }

    /// Returns the current leader if it is known. Returns `None` if this issuer leads itself.
    pub fn leader(&self) -> Option<&Leader> {
        match &self.role {
            Role::Following(leader) => leader.as_ref(),
            Role::Leading(_) => None,
        }
    }

    /// Ends the current term, if any, and becomes a follower.
    fn follow(&mut self, leader: Option<Leader>, effects: &mut Vec<Effect>) {
        let role = std::mem::replace(&mut self.role, Role::Following(leader.clone()));
        if let Role::Leading(term) = role {
            term.end(leader.as_ref(), effects);
        }
    }
}
