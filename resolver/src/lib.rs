//! The resolver mints short codes, stores links and serves redirects.
//!
//! Data flows one way: [`http`] listens and routes; the crate `redirect` leads visitors on, and the
//! API translates; the crate `app` decides; the crate `store` stores. The rules of links are in
//! the crate `links`, and the crate `codes` turns numbers into codes and back.
//!
//! Invariants are documented where they are enforced: numbers in `supply`, creates in
//! `app::creator`, lookups in `app::lookup`, the register in `store`, the bijection in `codes`.
//!
//! Deliberately absent: no redirect waits for the issuer or for etcd (I9). Only redirects of links
//! with a visit limit write to the store.

mod bootstrap;
pub mod completions;
pub mod config;
pub mod config_check;
pub mod http;
mod server;

pub use cli::Error;
pub use server::{Listeners, run};
