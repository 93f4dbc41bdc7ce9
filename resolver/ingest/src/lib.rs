//! The way of a visit from the spool to the store.
//!
//! 1. A redirect ends with a few bytes in the spool. Everything that takes longer happens here, on
//!    a thread of low priority: parsing user agents, locating addresses, counting, storing.
//! 2. A spooled visit is stored exactly once ([`storer`]).
//! 3. What visitors can make up is bounded: new texts by the minute, values of a dimension by their
//!    number. Beyond, visits are counted under "(other)".

pub mod announce;
mod attempts;
pub mod batch;
pub mod enrich;
pub mod import;
pub mod known_texts;
mod metrics;
mod minute;
mod pace;
mod rows_apart;
pub mod storer;
pub mod upkeep;

pub use enrich::Options;
pub use metrics::IngestMetrics;
