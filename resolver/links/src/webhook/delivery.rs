//! Deliveries: events on their way to a webhook.

use jiff::Timestamp;

use super::WebhookId;

/// Number of a delivery in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(i64);

impl DeliveryId {
    /// Wraps a stored number.
    #[must_use]
    pub const fn from_stored(id: i64) -> Self {
        Self(id)
    }

    /// Returns the number as it is stored.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// How far a delivery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// Another attempt is due, now or later.
    Open,
    /// The receiver has the event.
    Delivered,
    /// Every attempt failed, and there is no other one.
    Dead,
}

impl DeliveryState {
    /// Returns the state as it is stored.
    #[must_use]
    pub const fn stored(self) -> i64 {
        self as i64
    }

    /// Reads a stored state.
    #[must_use]
    pub const fn from_stored(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Open),
            1 => Some(Self::Delivered),
            2 => Some(Self::Dead),
            _ => None,
        }
    }

    /// Returns the name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

/// A delivery with its last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Number.
    pub id: DeliveryId,
    /// Webhook.
    pub webhook: WebhookId,
    /// Receiver's idempotency key, the same in all attempts.
    pub message_id: String,
    /// Name of the event's kind.
    pub kind: String,
    /// How far it has come.
    pub state: DeliveryState,
    /// Number of attempts, the one under way included.
    pub attempts: u32,
    /// When the delivery was queued.
    pub created_at: Timestamp,
    /// When the next attempt of an open delivery is due.
    pub due_at: Timestamp,
    /// Status of the last answer.
    pub last_status: Option<u16>,
    /// What went wrong in the last attempt.
    pub last_error: Option<String>,
    /// Beginning of the last answer's body.
    pub excerpt: Option<String>,
    /// When the delivery ended.
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_as_they_were_stored() {
        for state in [DeliveryState::Open, DeliveryState::Delivered, DeliveryState::Dead] {
            assert_eq!(DeliveryState::from_stored(state.stored()), Some(state));
        }
        assert_eq!(DeliveryState::from_stored(3), None);
    }
}
