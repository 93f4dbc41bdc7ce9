//! Cases that every store of visits passes. Each takes a store without visits, and the parts of the
//! database that it cannot change by itself.
//!
//! `visit_store_sqlite`, `visit_store_postgres` and `visits_clickhouse` run those that apply, each
//! with a store of its own.

pub(crate) mod batches;
pub(crate) mod counters;
pub(crate) mod deletion;
pub(crate) mod erasure;
mod fixture;
pub(crate) mod folding;
pub(crate) mod pages;
pub(crate) mod producers;
pub(crate) mod upkeep;

pub(crate) use fixture::{
    ALL_COLUMNS, Visit, all_rows, batch, noon, register, store_all, store_batch, tally, today, totals,
};
