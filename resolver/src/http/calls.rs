//! How many calls of the API a key and a client may make in a minute, and what they are told of it
//! (draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy` and `RateLimit`).
//!
//! 1. A budget holds a minute's worth and grows evenly, as that for unknown codes does (`budgets/rate.rs`). Each resolver counts by itself: to
//!    count together would cost a round trip for each call.
//! 2. Whoever comes with keys that do not exist spends a small budget of their address: guesses are slow, whatever the other limits are.
//! 3. When that is spent keys are still looked up, few in a second: a good key of the same address waits, and passes.

use std::{net::IpAddr, time::Duration};

use daemon::network;
use hyper::header::{HeaderName, HeaderValue};
use links::api_key::Grant;
use tokio::time::Instant;

use super::{
    Answer,
    budgets::{Holder, Lane, Left, MINUTE, Rate, late_keys},
};

/// Wrong keys that one client may come with, per minute, at once.
const WRONG_KEYS: u32 = 60;
/// Keys of one client that are looked up in a minute when it has come with so many.
const LATE_KEYS: u32 = 60;
/// How long a key may wait for that.
const LATE_PATIENCE: Duration = Duration::from_secs(5);

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
    keys: Rate,
    clients: Rate,
    wrong_keys: Rate,
    late_keys: Rate,
    late: Lane,
    since: Instant,
}

impl Calls {
    pub(crate) fn new(limits: CallLimits) -> Self {
        // Of keys some may have a limit of their own, so there are always counters for them.
        Self {
            limits,
            keys: Rate::with_counters(),
            clients: Rate::new(limits.per_client),
            wrong_keys: Rate::new(WRONG_KEYS),
            late_keys: Rate::new(LATE_KEYS),
            late: late_keys(LATE_PATIENCE),
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

    /// Takes a wrong key from a client's budget. When that is spent it waits for one of the few that are looked up all the same.
    pub(super) async fn spend_of_wrong_keys(&self, client: IpAddr) -> Result<(), Refused> {
        let network = network(client);
        if self.wrong_keys.spend(network, self.since.elapsed()).is_ok() {
            return Ok(());
        }
        let late = || self.late_keys.spend(network, self.since.elapsed());
        match self.late.pass(Holder::Client(network), late).await {
            Ok(_) => Ok(()),
            Err(wait) => Err(Refused { wait, share: None }),
        }
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
