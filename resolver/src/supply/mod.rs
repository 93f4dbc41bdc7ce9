//! Numbers in hand: where they come from, how they are claimed, and how the rest goes back.
//!
//! [`Buffer`] is the pure part: two blocks, claims, and what became of each number. [`Minting`] lets creators wait for it,
//! [`Supplier`] fills it from the issuer and closes blocks that are used up.

mod buffer;
mod issuer_client;
mod minting;
mod supplier;

pub use buffer::{Buffer, Claim, Closed, Fate};
pub use issuer_client::{IssuerClient, Refused, Target};
pub use minting::{ClaimError, Minting};
pub use supplier::{Supplier, SupplierConfig};
