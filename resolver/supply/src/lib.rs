//! The supply of numbers: carries out what the pure core of `holder` asks for.
//!
//! [`Minting`] lets creators wait for a number of one keyspace. [`Supplier`] steps the core: it calls
//! the issuer, asks the store and waits. `heartbeat` tells the issuer that this holder lives, and
//! brings the [`Ceilings`] that rule codes out; `history` raises the database's mark. [`SetAside`]
//! makes the issuer's calls for a reservation.

mod ceilings;
mod clock;
pub mod guard;
mod heartbeat;
mod history;
mod issuer_client;
mod messages;
mod metrics;
mod minting;
mod owner;
mod pace;
mod rate;
mod set_aside;
mod supplier;

pub use ceilings::Ceilings;
pub use clock::Clock;
pub use holder::{Claim, ClaimError, Entered, EntryId, Fate, Refused, Row, Spec, Verdict};
pub use issuer_client::{IssuerClient, Target};
pub use metrics::SupplyMetrics;
pub use minting::{Minting, Stock};
pub use owner::Owner;
pub use set_aside::SetAside;
pub use supplier::{Closing, Lost, Supplier, SupplierConfig};
