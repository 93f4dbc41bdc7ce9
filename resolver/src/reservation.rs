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

use std::fmt;

use jiff::Timestamp;
use numbers::Span;

use crate::{api_key::ApiKeyId, codes::KeyspaceIndex};

pub use reserver::Reserver;

/// Codes per reservation: more would make an answer of megabytes.
pub const COUNT_MAX: u64 = 100_000;
/// Links per fill.
pub const FILL_MAX: usize = 10_000;

/// A reservation's name, drawn at random.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReservationId(String);

impl ReservationId {
    /// Draws one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Reads one from a path; none when it has not the form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its name as a holder.
    #[must_use]
    pub fn holder(&self) -> String {
        format!("reservation-{}", self.0)
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A reservation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its name.
    pub id: ReservationId,
    /// Which keyspace its numbers are of.
    pub keyspace: KeyspaceIndex,
    /// The key that made it.
    pub created_by: ApiKeyId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was given up.
    pub closed_at: Option<Timestamp>,
    /// Its numbers, ascending and disjoint. None any more once others have taken them over.
    pub spans: Vec<Span>,
}

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
