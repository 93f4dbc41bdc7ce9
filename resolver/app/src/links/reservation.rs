//! Codes before links (G7): numbers are reserved, their codes are returned at once, and the links
//! are stored later.
//!
//! 1. A reservation is a holder of its own at the issuer. Its blocks do not leak, however long it
//!    is silent. As for any holder, its blocks are registered before a code is returned.
//! 2. A link is stored under its reserved number by the same insert that every create uses, and the
//!    primary key decides. So a fill may be repeated after an unknown outcome. A fill that arrives
//!    after the reservation was given up does no harm.
//! 3. Giving up turns the holder into one whose blocks are leaked. A holder that takes them over
//!    asks the database which numbers are unused, so nothing here has to know what was filled.
//! 4. Every resolver serves every reservation. One that does not know a reservation's keyspace
//!    reads the settings again. If that fails, it does not know what is reserved, and the call may
//!    be repeated.
//!
//! Rejected: taking the numbers out of this resolver's own block. A reservation outlives the
//! process, and the account would have to count its numbers as used although they have no rows.

mod fill;
mod reserver;

pub use reserver::Reserver;

/// The outcome of one link of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The link is stored, by this call or by an earlier attempt of it.
    Stored,
    /// The code does not belong to this reservation.
    NotReserved,
    /// The code occurred earlier in the same call.
    Repeated,
    /// Another link is stored under the code.
    Conflict,
    /// Surely not stored. It may be sent again.
    Failed,
    /// Unknown whether it is stored. It may be sent again, unchanged.
    Unknown,
}
