//! How many calls of the API a key and a client may make in a minute, and what they are told of it
//! (draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy` and `RateLimit`).
//!
//! 1. A budget holds a minute's worth and grows evenly, as that for unknown codes does (`limits.rs`). Each resolver counts by itself: to count together
//!    would cost a round trip for each call.
//! 2. Whoever comes with keys that do not exist spends a small budget of their address: guesses are slow, whatever the other limits are.

use std::{net::IpAddr, time::Duration};

use hyper::header::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::{
    Answer,
    limits::{Budget, Left, network},
};
use crate::api_key::Grant;

/// Wrong keys that one client may come with, per minute.
const WRONG_KEYS: u32 = 120;

/// How many calls there may be in a minute; 0 for any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// With one key that has no limit of its own.
    pub per_key: u32,
    /// From one client, whatever its keys.
    pub per_client: u32,
}

/// What is left to whoever called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    policy: &'static str,
    per_minute: u32,
    left: Left,
}

/// Who calls how often.
pub(crate) struct Calls {
    limits: CallLimits,
    keys: Budget,
    clients: Budget,
    wrong_keys: Budget,
    since: Instant,
}

impl Calls {
    pub(crate) fn new(limits: CallLimits) -> Self {
        // Of keys some may have a limit of their own, so there are always counters for them.
        Self {
            limits,
            keys: Budget::with_counters(),
            clients: Budget::new(limits.per_client),
            wrong_keys: Budget::new(WRONG_KEYS),
            since: Instant::now(),
        }
    }

    /// Takes a call from a client's budget, before its key is looked at.
    pub(super) fn spend_of_client(&self, client: IpAddr) -> Result<Option<Share>, Duration> {
        let left = self.clients.spend(network(client), self.since.elapsed())?;
        let share = |left| Share { policy: "client", per_minute: self.limits.per_client, left };
        Ok(Some(left).filter(|_| self.limits.per_client > 0).map(share))
    }

    /// Takes a call from a key's budget.
    pub(super) fn spend_of_key(&self, grant: &Grant) -> Result<Option<Share>, Duration> {
        let per_minute = grant.limits.calls_per_minute.unwrap_or(self.limits.per_key);
        if per_minute == 0 {
            return Ok(None);
        }
        let left = self.keys.spend_of(grant.id, self.since.elapsed(), per_minute)?;
        Ok(Some(Share { policy: "key", per_minute, left }))
    }

    /// Gives it back: the key was right.
    pub(super) fn give_back_wrong_key(&self, client: IpAddr) {
        self.wrong_keys.give_back(network(client));
    }

    /// Takes a wrong key from a client's budget.
    pub(super) fn spend_of_wrong_keys(&self, client: IpAddr) -> Result<(), Duration> {
        self.wrong_keys.spend(network(client), self.since.elapsed()).map(drop)
    }
}

impl Share {
    /// Tells what is left.
    pub(super) fn tell(self, answer: &mut Answer) {
        let Self { policy, per_minute, left } = self;
        let headers = [
            ("ratelimit-policy", format!("\"{policy}\";q={per_minute};w=60")),
            ("ratelimit", format!("\"{policy}\";r={};t={}", left.count, left.full_in.as_secs())),
        ];
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                answer.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
    }
}
