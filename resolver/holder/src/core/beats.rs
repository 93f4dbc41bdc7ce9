//! Beats (keep-alives): they keep this holder's blocks its own, and report the numbers in hand.
//!
//! A beat's report is read after the last seq that it covers. So a block that arrives in between is
//! in the report, which never states less than what is in hand.

use numbers::{Incarnation, Millis, Namespace, Seq};

use super::{Effect, Session, Step, StopReason, SupplyCore};
use crate::{keyspace::Keyspaces, safety_rule::SafetyRule};

/// The content of a beat, as sent to the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    /// The incarnation of the registration.
    pub incarnation: Incarnation,
    /// The last seq whose block the report covers.
    pub last_seq: Seq,
    /// The count of unused numbers in this holder's blocks, for each namespace.
    pub progress: Vec<(Namespace, u64)>,
}

impl SupplyCore {
    /// Returns the next beat of a registration.
    pub fn beat(&self, session: Session, keyspaces: &mut impl Keyspaces) -> Beat {
        let incarnation = session.incarnation;
        let last_seq = if self.rules.keep(SafetyRule::EnteredOnly) { self.entered } else { self.seq };
        let unsettled = |keyspace| keyspaces.with(keyspace, |keyspace| keyspace.unsettled());
        let names = self.specs.iter().map(|spec| spec.namespace.clone());
        let progress = names.zip((0..self.specs.len()).map(unsettled)).collect();
        Beat { incarnation, last_seq, progress }
    }

    /// Gives up unclaimed numbers of the keyspaces in which another holder starves. The caller then
    /// wakes the supplier, which returns their blocks.
    pub fn share(&self, now: Millis, starving: &[Namespace], keyspaces: &mut impl Keyspaces) {
        for (keyspace, spec) in self.specs.iter().enumerate() {
            if starving.contains(&spec.namespace) {
                keyspaces.with(keyspace, |keyspace| keyspace.relinquish(now));
            }
        }
    }

    /// Drops a registration that the issuer does not know any more. A newer registration stays.
    pub fn forget(&mut self, session: Session) {
        if self.session == Some(session) {
            self.session = None;
        }
    }

    /// Stops minting because another process has taken this holder's place. This acts at once,
    /// because the supplier may be waiting for the database.
    pub fn supersede(&mut self, reason: String, keyspaces: &mut impl Keyspaces) -> Vec<Effect> {
        let mut step = Step { core: self, now: Millis(0), keyspaces, effects: Vec::new() };
        step.lose(StopReason::Superseded(reason));
        step.effects
    }
}
