//! Numbers in hand: where they come from, how they are claimed, and how the rest goes back.
//!
//! [`Buffer`] is the pure part: two blocks, claims, and what became of each number. [`Minting`] lets creators wait for it,
//! [`Supplier`] fills it from the issuer and closes blocks that are used up: `enter` lets a block in, `returns` lets it out.
//! Near the end of a number space `demand` keeps holders from hoarding, and hints in the answers to beats let the last numbers reach
//! those that starve (`issuer::core`'s `scarcity`).
//! `heartbeat` tells the issuer that this holder lives, and brings the [`Ceilings`] that rule codes out.

mod buffer;
mod ceilings;
mod demand;
mod enter;
pub mod guard;
mod heartbeat;
mod history;
mod issuer_client;
mod metrics;
mod minting;
mod pace;
mod rate;
mod returns;
mod set_aside;
mod supplier;
#[cfg(test)]
mod tail;

pub use buffer::{Buffer, Claim, Closed, Entered, EntryId, Fate};
pub use ceilings::Ceilings;
pub use enter::Owner;

pub use issuer_client::{IssuerClient, Refused, Target};
pub use metrics::SupplyMetrics;
pub use minting::{ClaimError, Minting, Stock};
pub use set_aside::SetAside;
pub use supplier::{Closing, Lost, Supplier, SupplierConfig};
