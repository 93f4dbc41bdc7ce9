//! Places in the log of subscriptions that have just ended, for clients that subscribe anew.
//!
//! Shlink's web client subscribes anew after each message, without the id of the event that it
//! received. It drops what arrives on the former connection meanwhile. So such a stream gets its
//! events one at a time, and the next subscription of the same token and topics continues behind
//! the last event that was sent.

use std::time::Duration;

use tokio::time::Instant;

/// What a client that subscribes anew is known by: its token and its topics, as a hash that clients
/// cannot choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumption(pub(super) u64);

/// How soon after an event a client ends its subscription because of it, and how soon after that it
/// subscribes anew: it draws its page before. A person who returns to a page later has read the
/// visits up to then from the API.
pub(super) const WITHIN: Duration = Duration::from_secs(6);
const PLACES_MAX: usize = 1_000;

struct Place {
    of: Resumption,
    /// The number of the entry to be read next.
    next: u64,
    left_at: Instant,
}

/// The places of subscriptions that have just ended.
#[derive(Default)]
pub(super) struct Places(Vec<Place>);

impl Places {
    pub(super) fn keep(&mut self, of: Resumption, next: u64, now: Instant) {
        self.forget_old(now);
        if self.0.len() < PLACES_MAX {
            self.0.push(Place { of, next, left_at: now });
        }
    }

    /// Takes the farthest place of a client, if there is one.
    pub(super) fn take(&mut self, of: Resumption, now: Instant) -> Option<u64> {
        self.forget_old(now);
        let farthest = self.0.iter().filter(|place| place.of == of).map(|place| place.next).max();
        self.0.retain(|place| place.of != of);
        farthest
    }

    /// Returns whether a client may still come back.
    pub(super) fn is_empty(&mut self, now: Instant) -> bool {
        self.forget_old(now);
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|place| now.duration_since(place.left_at) < WITHIN);
    }
}
