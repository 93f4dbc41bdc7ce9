//! Vocabulary that issuer and resolver share: ranges and blocks of numbers, validated names,
//! fencing tokens.
//!
//! Pure values: no I/O, no waiting, no clock. The allocation of numbers is not in this crate.

mod block;
mod invalid;
mod names;
mod tokens;

pub use block::{Block, Span};
pub use invalid::Invalid;
pub use names::{HolderId, Instance, LedgerId, Namespace, StoreEpoch};
pub use tokens::{Batch, Epoch, Generation, Incarnation, Mark, Millis, Revision, Seq, Ticket};
