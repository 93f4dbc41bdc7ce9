//! Webhooks: signatures, the addresses that they may reach, and their delivery.

mod event;
mod filter;
mod secret;
mod signature;
mod time;

pub use self::{
    event::{EventKind, Kinds, UnknownKind},
    filter::{Filter, Subject},
    secret::{Secret, SecretError},
    signature::{MessageId, MessageIdError, SignedHeaders, sign},
    time::UnixSeconds,
};
