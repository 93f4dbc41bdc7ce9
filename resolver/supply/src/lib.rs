//! The supply of numbers: carries out the effects of the pure core in `holder`.
//!
//! [`Minting`] lets creators wait for a number of one keyspace. [`Supplier`] steps the core: it
//! calls the issuer and the store, and waits. `heartbeat` sends beats (keep-alives) to the issuer.
//! `history` raises the database's mark.
//! [`ReservationHolder`] is a reservation's registration with the issuer.

mod clock;
mod heartbeat;
mod history;
mod holder_state;
mod issuer_client;
mod messages;
mod metrics;
mod minting;
mod pace;
mod rate;
mod reservation_holder;
mod supplier;

pub use clock::Clock;
pub use holder::{
    Choice, Claim, ClaimError, Entered, EntryId, Fate, Refused, Row, Spec, StopReason, Verdict, safety_rule,
};
pub use holder_state::{Owner, Supplier, SupplierConfig};
pub use issuer_client::{IssuerClient, Issuers, Target};
pub use metrics::SupplyMetrics;
pub use minting::{Minting, Stock};
pub use proto::issuer::v1::{GetStatusResponse as IssuerStatus, NamespaceStatus};
pub use reservation_holder::ReservationHolder;
pub use supplier::Closing;
