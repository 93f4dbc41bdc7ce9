//! The ceilings that the release before told its holders, which this one tells to nobody.
//!
//! 1. Numbers at or above the ceiling of a namespace were allocated to no holder. A resolver of the
//!    release before answers 404 for their codes without asking the database, for one holder TTL
//!    from before it asked an issuer of that release.
//! 2. So a leader goes past a ceiling that it found in the ledger only one holder TTL after its
//!    take-over: the longest that any leader ever had, which `head` keeps.
//! 3. From then on the ceiling is the capacity. An issuer of the release before that leads again
//!    goes on from there, and rules nothing out.
//!
//! Resolvers of this release ask the database for every code. The release after it needs neither
//! this file nor the two members of [`NamespaceRecord`].
//!
//! [`NamespaceRecord`]: super::NamespaceRecord

use numbers::{Millis, Namespace};

use super::leader_state::LeaderState;

/// Lifts the ceiling of a namespace to its capacity, once nobody can trust it any more. It is
/// written with the next transaction.
pub(super) fn lift(leader: &mut LeaderState, now: Millis, namespace: &Namespace) {
    if now.since(leader.since) < leader.state.head.holder_ttl_ms {
        return;
    }
    if let Some(record) = leader.state.namespace_mut(namespace) {
        (record.ceiling, record.announced) = (record.capacity, record.capacity);
    }
}
