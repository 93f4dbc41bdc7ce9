//! Beats: they keep this holder's blocks its own, report what is in hand, and bring the ceilings.
//!
//! What a beat reports is read after the last seq that it covers: a block that came in between is in
//! the report, and the report never says less than what is in hand.

use numbers::{Incarnation, Millis, Namespace, Seq};

use super::{Core, Effect, Lost, Session, Step};
use crate::{keyspace::Keyspaces, rules::Rule};

/// What a beat tells the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    /// The registration.
    pub incarnation: Incarnation,
    /// The last seq whose block the report covers.
    pub last_seq: Seq,
    /// How many numbers of this holder's blocks are not used, in each namespace.
    pub progress: Vec<(Namespace, u64)>,
}

impl Core {
    /// Returns the next beat of a registration.
    pub fn beat(&self, session: Session, keyspaces: &mut impl Keyspaces) -> Beat {
        let incarnation = session.incarnation;
        let last_seq = if self.rules.keep(Rule::EnteredOnly) { self.entered } else { self.seq };
        let unsettled = |keyspace| keyspaces.with(keyspace, |keyspace| keyspace.unsettled());
        let names = self.specs.iter().map(|spec| spec.namespace.clone());
        let progress = names.zip((0..self.specs.len()).map(unsettled)).collect();
        Beat { incarnation, last_seq, progress }
    }

    /// Gives numbers up where another holder starves. The supplier is to be woken.
    pub fn share(&self, now: Millis, starving: &[Namespace], keyspaces: &mut impl Keyspaces) {
        for (keyspace, spec) in self.specs.iter().enumerate() {
            if starving.contains(&spec.namespace) {
                keyspaces.with(keyspace, |keyspace| keyspace.relinquish(now));
            }
        }
    }

    /// The issuer does not know this registration any more. One that was made since stays.
    pub fn forget(&mut self, session: Session) -> Vec<Effect> {
        if self.session != Some(session) {
            return Vec::new();
        }
        self.session = None;
        vec![Effect::Session]
    }

    /// Another process has taken this holder's place: at once, the supplier may be waiting for the
    /// database.
    pub fn supersede(&mut self, reason: String, keyspaces: &mut impl Keyspaces) -> Vec<Effect> {
        let mut step = Step { core: self, now: Millis(0), keyspaces, effects: Vec::new() };
        step.lose(Lost::Superseded(reason));
        step.effects
    }
}
