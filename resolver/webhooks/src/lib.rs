//! Webhooks: signatures, the addresses that they may reach, and their delivery.
//!
//! 1. A request reaches only addresses that were checked in the same attempt: [`is_public`], or a
//!    network that the operator allows ([`Policy`]). The name is resolved once, and the connection
//!    goes to an address of that answer.
//! 2. No redirect is followed, and no proxy of the environment is used: both would choose an
//!    address that nothing has checked.
//! 3. An attempt is bounded in time and bytes, whatever the receiver sends or does not read
//!    ([`Timeouts`], [`MAX_BODY`]).
//! 4. Every attempt of a delivery has the same [`MessageId`], so that a receiver can tell an event
//!    that it already has. Deliveries happen at least once.
//! 5. This crate keeps nothing: webhooks, deliveries and their times are stored by the caller.
//!
//! Calls block. An asynchronous client was rejected: its resolver and connector would need the same
//! checks, and attempts are few enough for a bounded pool of threads.

mod address;
mod lookup;
mod outcome;
mod policy;
mod retry_after;
mod schedule;
mod secret;
mod sender;
mod signature;
mod socket;
mod time;
mod webhook_url;

pub use ipnet::IpNet;
pub use ureq::http::StatusCode;

pub use self::{
    address::{is_public, special_range},
    outcome::{Attempt, Outcome, Reason, RetryAdvice, Silence},
    policy::{Policy, RefusedAddress},
    schedule::{Attempts, Health, Jitter, Next, next},
    secret::{Secret, SecretError},
    sender::{MAX_BODY, Roots, RootsError, Sender, Timeouts},
    signature::{MessageId, MessageIdError, SignedHeaders, sign},
    socket::Phase,
    time::UnixSeconds,
    webhook_url::{UrlError, WebhookUrl},
};
