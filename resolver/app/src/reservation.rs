//! Codes before links (G7): a range of numbers is set aside, its codes are told at once, and their links are stored later.
//!
//! 1. A reservation is a holder of its own with the issuer, whose blocks do not leak however long nothing is heard of it. Its
//!    blocks are in the register before a code is told, as for any holder.
//! 2. A link is filled in under its reserved number by the same insert that every create uses; the primary key decides. So a fill
//!    may be repeated after an unknown outcome, and a fill that comes after the reservation was given up harms nobody.
//! 3. Giving up turns the holder into one whose blocks are leaked. Whoever takes them over asks the database which numbers are
//!    unused, so nothing has to be known here of what was filled.
//! 4. Every resolver serves every reservation. One that does not know a reservation's keyspace
//!    reads the settings again. If it cannot, it does not know what is reserved, and the call may
//!    be repeated.
//!
//! Rejected: numbers taken out of this resolver's own block. A reservation outlives the process, and the account would have to
//! call its numbers used though they have no rows.

mod fill;
mod reserver;

pub use reserver::Reserver;

/// Codes per reservation: more would make an answer of megabytes.
pub const COUNT_MAX: u64 = 100_000;
/// Links per fill.
pub const FILL_MAX: usize = 10_000;

/// Why a reservation could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The keyspace has not that many left.
    #[error("the keyspace has not that many numbers left")]
    Exhausted,
    /// The issuer or the database is away.
    #[error("no numbers or no database are to be had at the moment")]
    Unavailable,
    /// The reservation was given up, and takes no more links.
    #[error("the reservation was given up")]
    Closed,
}

/// What became of one link that was to be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// It is stored, by this call or by an earlier copy of it.
    Stored,
    /// The code is not of this reservation.
    NotReserved,
    /// The code came before in the same call.
    Repeated,
    /// Another link is stored under the code.
    Conflict,
    /// Surely not stored: it may be sent again.
    Failed,
    /// Nobody knows: it may be sent again, as it is.
    Unknown,
}
