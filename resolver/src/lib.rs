//! The resolver mints short codes, stores links and serves redirects.
//!
//! Data flows in one direction: [`http`] listens, routes and translates, the crate `app` decides,
//! and the crate `store` stores. The crate `links` defines links and their rules. The crate `codes`
//! maps numbers to codes and back.
//!
//! Invariants are documented where they are enforced: numbers in `supply`, creates in
//! `app::creator`, lookups in `app::lookup`, the register in `store`, the bijection in `codes`.
//!
//! Deliberately absent: no redirect waits for the issuer or for etcd (I9). Only redirects of links
//! with a visit limit write to the store.

pub mod code_key_file;
pub mod commands;
pub mod config;
mod error;
pub mod hot;
pub mod http;
pub mod places;
mod prepare;
mod server;

pub use error::Error;
pub use server::{Greeting, Listeners, run};
