//! The resolver mints short codes, stores links and serves redirects.
//!
//! `ARCHITECTURE.md` has the crates, and the invariants with the files that enforce them.
//!
//! Deliberately absent: no redirect waits for the issuer or for etcd (I9). Only redirects of links
//! with a visit limit write to the store.

mod bootstrap;
pub mod completions;
pub mod config;
pub mod config_check;
mod server;

pub use cli::Error;
pub use server::{Listeners, run};
