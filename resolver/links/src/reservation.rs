//! Reservations: numbers set aside, whose codes are known before their links exist.

use codes::KeyspaceIndex;
use jiff::Timestamp;
use numbers::{HolderId, Span};

use crate::{
    api_key::{ApiKeyId, random_hex},
    text_value::text_value,
};

/// Maximum number of codes in a reservation: more would make the answer megabytes long.
pub const COUNT_MAX: u64 = 100_000;
/// Maximum number of open reservations of one API key. Each is a holder, of which the issuer keeps
/// a limited number for all keys.
pub const OPEN_MAX: u64 = 1_000;
/// Maximum number of links in one fill.
pub const FILL_MAX: usize = 10_000;

/// Random id of a reservation: 32 hexadecimal digits in lower case.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ReservationId(Box<str>);

text_value!(ReservationId);

impl ReservationId {
    /// Generates a random id of 128 bits.
    pub fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self(random_hex::<16>()?.into()))
    }

    /// Parses an id from a request path: 32 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(hex)).then(|| Self(text.into()))
    }

    /// Returns the holder name under which the reservation's blocks are registered.
    pub fn holder(&self) -> String {
        format!("{}{}", HolderId::RESERVATION, self.0)
    }
}

/// Totals of the open reservations of an API key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenReservations {
    /// Number of reservations, also of those without a number.
    pub count: u64,
    /// Number of their codes, filled or not.
    pub codes: u64,
}

/// A stored reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Reservation id.
    pub id: ReservationId,
    /// Keyspace of the reserved numbers.
    pub keyspace: KeyspaceIndex,
    /// API key that made the reservation.
    pub created_by: ApiKeyId,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time at which the reservation was given up.
    pub closed_at: Option<Timestamp>,
    /// Reserved numbers, ascending and disjoint. Empty once other holders have taken them over.
    pub spans: Vec<Span>,
}
