//! Call limits of the API per key and per client, and their report in the answers
//! (draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy` and `RateLimit`).
//!
//! 1. A budget holds a minute's worth and grows evenly, as that for unknown codes does ([`Rate`]).
//!    Each resolver counts by itself; a shared count would cost a round trip per call.
//! 2. A call with an unknown key takes from a small budget of its client's address. So guessing is
//!    slow, whatever the other limits are.
//! 3. When that budget is used up, a few calls wait until it has grown. So a correct key from the
//!    same address passes.

use std::{net::IpAddr, time::Duration};

use hyper::header::{HeaderName, HeaderValue};
use limits::{
    Account, Lane, Left, MINUTE, Pool, Rate,
    budgets::{LATE, WRONG_KEYS_PER_MINUTE},
    network,
};
use links::api_key::Grant;
use web::Answer;

/// The longest wait of a key whose client has used too many wrong ones.
const LATE_PATIENCE: Duration = Duration::from_secs(5);

/// The maximum numbers of calls per minute; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// The calls of one key without a limit of its own.
    pub per_key: u32,
    /// The calls of one client, whatever its keys.
    pub per_client: u32,
}

/// The rest of a caller's budget, for the answer's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    policy: &'static str,
    per_minute: u32,
    left: Left,
}

/// The error for a call beyond a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The time until the next call is allowed.
    pub wait: Duration,
    /// The budget to report; `None` for a client with too many wrong keys.
    pub(crate) share: Option<Share>,
}

/// The call rates of keys and clients.
pub struct Calls {
    limits: CallLimits,
    keys: Rate,
    clients: Rate,
    wrong_keys: Rate,
    late: Lane,
}

impl Calls {
    /// Creates rates of which nothing is spent yet.
    pub fn new(limits: CallLimits) -> Self {
        Self {
            limits,
            keys: Rate::new(limits.per_key),
            clients: Rate::new(limits.per_client),
            wrong_keys: Rate::new(WRONG_KEYS_PER_MINUTE),
            late: Lane { places: Pool::of_clients(LATE), patience: LATE_PATIENCE },
        }
    }

    /// Takes a call from a client's budget, before its key is checked.
    pub(crate) fn spend_of_client(&self, client: IpAddr) -> Result<Option<Share>, Refused> {
        Share::of("client", self.limits.per_client, || self.clients.spend(network(client)))
    }

    pub(crate) fn spend_of_key(&self, grant: &Grant) -> Result<Option<Share>, Refused> {
        let per_minute = grant.limits.calls_per_minute.unwrap_or(self.limits.per_key);
        Share::of("key", per_minute, || self.keys.spend_of(grant.id, per_minute))
    }

    /// Gives an attempt back to a client's budget, because its key was valid.
    pub(crate) fn give_back_wrong_key(&self, client: IpAddr) {
        self.wrong_keys.give_back(network(client));
    }

    /// Takes a wrong key from a client's budget. When that is used up, the call waits until it has
    /// grown, if few others wait.
    pub(crate) async fn spend_of_wrong_keys(&self, client: IpAddr) -> Result<(), Refused> {
        let spend = || self.wrong_keys.spend(network(client));
        match self.late.pass(Account::client(client), spend).await {
            Ok(_) => Ok(()),
            Err(wait) => Err(Refused { wait, share: None }),
        }
    }
}

impl Share {
    /// Spends a call of a budget, unless it has no limit.
    fn of(
        policy: &'static str,
        per_minute: u32,
        spend: impl FnOnce() -> Result<Left, Duration>,
    ) -> Result<Option<Self>, Refused> {
        if per_minute == 0 {
            return Ok(None);
        }
        spend().map(|left| Some(Self { policy, per_minute, left })).map_err(|wait| {
            // Of a full minute's worth, everything has to grow back except the remainder.
            let full_in = MINUTE - MINUTE / per_minute + wait;
            let share = Self { policy, per_minute, left: Left { count: 0, full_in } };
            Refused { wait, share: Some(share) }
        })
    }

    /// Adds the headers that report the budget.
    pub(crate) fn tell(self, answer: &mut Answer) {
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
