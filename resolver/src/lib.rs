//! The resolver mints short codes, stores links and serves redirects.
//!
//! Data flows one way: [`http`] listens and routes; [`lookup`], [`create`] and [`reservation`] do; the crate `store` stores. [`supply`] keeps numbers
//! in hand and the crate `codes` turns them into codes and back; what a link may be stands in the crate `links`.
//!
//! Invariants are listed where they are enforced: numbers in [`supply`], creates in [`create`], lookups in [`lookup`], the
//! register in the crate `store`, the bijection in the crate `codes`.
//!
//! Deliberately absent: no redirect waits for the issuer or for etcd (I9), and none writes.

pub mod admission;
pub mod app;
mod budgets;
pub mod clock;
pub mod code_key_file;
pub mod commands;
pub mod config;
pub mod create;
pub mod directory;
mod error;
pub mod freshness;
mod guard;
pub mod hot;
pub mod http;
mod key_names;
pub mod key_ring;
pub mod lookup;
pub mod metrics;
mod passwords;
pub mod places;
mod prepare;
pub mod reservation;
mod server;
pub mod supply;
pub mod sweeper;
pub mod turns;
mod url_indexer;
pub mod visits;
#[cfg(test)]
mod world;

pub use error::Error;
pub use server::{Greeting, Listeners, run};
