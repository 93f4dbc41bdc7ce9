//! Webhooks: signatures, the addresses that they may reach, and their delivery.

mod secret;
mod signature;
mod time;

pub use self::{
    secret::{Secret, SecretError},
    signature::{MessageId, MessageIdError, SignedHeaders, sign},
    time::UnixSeconds,
};
