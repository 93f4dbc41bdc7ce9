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
    limits::{Budget, Left, MINUTE, network},
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

/// A call too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// How long to wait until there is one again.
    pub(super) wait: Duration,
    /// What is told of the budget; nothing to whoever comes with wrong keys.
    pub(super) share: Option<Share>,
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
    pub(super) fn spend_of_client(&self, client: IpAddr) -> Result<Option<Share>, Refused> {
        let per_minute = self.limits.per_client;
        if per_minute == 0 {
            return Ok(None);
        }
        let spent = self.clients.spend(network(client), self.since.elapsed());
        Share::of("client", per_minute, spent).map(Some)
    }

    /// Takes a call from a key's budget.
    pub(super) fn spend_of_key(&self, grant: &Grant) -> Result<Option<Share>, Refused> {
        let per_minute = grant.limits.calls_per_minute.unwrap_or(self.limits.per_key);
        if per_minute == 0 {
            return Ok(None);
        }
        let spent = self.keys.spend_of(grant.id, self.since.elapsed(), per_minute);
        Share::of("key", per_minute, spent).map(Some)
    }

    /// Gives it back: the key was right.
    pub(super) fn give_back_wrong_key(&self, client: IpAddr) {
        self.wrong_keys.give_back(network(client));
    }

    /// Takes a wrong key from a client's budget.
    pub(super) fn spend_of_wrong_keys(&self, client: IpAddr) -> Result<(), Refused> {
        let spent = self.wrong_keys.spend(network(client), self.since.elapsed());
        spent.map(drop).map_err(|wait| Refused { wait, share: None })
    }
}

impl Share {
    fn of(policy: &'static str, per_minute: u32, spent: Result<Left, Duration>) -> Result<Self, Refused> {
        spent.map(|left| Self { policy, per_minute, left }).map_err(|wait| {
            // Of a full minute's worth all but what is still to be waited for has to grow.
            let full_in = MINUTE - MINUTE / per_minute + wait;
            let share = Self { policy, per_minute, left: Left { count: 0, full_in } };
            Refused { wait, share: Some(share) }
        })
    }

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
