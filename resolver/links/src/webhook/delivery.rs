//! Deliveries: events on their way to a webhook.

use jiff::Timestamp;

use super::WebhookId;

codes::stored_number! {
    /// Number of a delivery in the database.
    pub struct DeliveryId(i64);
}

codes::named_values! {
    /// How far a delivery has come. The numbers are stored.
    pub enum DeliveryState {
        /// Another attempt is due, now or later.
        Open = 0 => "open",
        /// The receiver has the event.
        Delivered = 1 => "delivered",
        /// Every attempt failed, and there is no other one.
        Dead = 2 => "dead",
    }
}

impl DeliveryState {
    /// Returns the state as it is stored.
    pub const fn stored(self) -> i64 {
        self as i64
    }

    /// Reads a stored state.
    pub fn from_stored(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.stored() == number)
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
