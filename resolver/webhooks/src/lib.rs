//! Webhooks: signatures, the addresses that they may reach, and their delivery. Titles of pages and
//! icons of hosts are read over the same connections.
//!
//! 1. A request reaches only addresses that were checked in the same attempt: public ones, or those
//!    of a network that the operator allows ([`Policy`]). The name is resolved once, and the
//!    connection goes to an address of that answer.
//! 2. No redirect of a receiver is followed, and no proxy of the environment is used. The redirects
//!    of a page ([`PageReader`]) are checked like the page itself.
//! 3. An attempt is bounded in time and bytes, whatever the receiver sends or does not read.
//! 4. Every attempt of a delivery has the same message id, so that a receiver can tell an event
//!    that it already has. Deliveries happen at least once.
//! 5. This crate keeps nothing: webhooks, deliveries and their times are stored by the caller.

mod address;
mod connect;
mod icon;
mod outcome;
mod policy;
mod sender;
mod signature;
mod title;
mod webhook_url;

pub use hyper::StatusCode;

pub use self::{
    icon::Icon,
    outcome::{Attempt, Failure, Outcome},
    policy::Policy,
    sender::{PageReader, Roots, Sender},
    signature::{SecretError, SignedHeaders, generate_secret, sign},
    webhook_url::{Refused, WebhookUrl},
};
