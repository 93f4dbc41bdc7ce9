//! Reservations: numbers that were set aside, whose codes are told before their links exist.

use std::fmt;

use codes::KeyspaceIndex;
use jiff::Timestamp;
use numbers::Span;

use crate::api_key::ApiKeyId;

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
