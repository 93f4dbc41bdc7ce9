//! The issuer allocates contiguous blocks of numbers, each number at most once.
//!
//! Data flows one way: [`grpc`] checks a call and asks the [`driver`], which feeds the pure
//! [`core`] and runs its effects against a [`ledger`]. The election tells the driver when this
//! process leads.
//!
//! The invariants of the protocol are listed where they are enforced: [`core`] for allocation,
//! [`ledger`] for the guarded transaction, and the election for leadership.
//!
//! Two things are deliberately absent: nothing here knows what the numbers are used for, and safety
//! depends on no clock.

#[cfg(feature = "etcd")]
pub mod config;
#[cfg(feature = "etcd")]
pub mod config_check;
pub mod core;
pub mod driver;
#[cfg(feature = "etcd")]
mod election;
pub mod embedded;
mod error;
#[cfg(feature = "etcd")]
mod etcd_channel;
pub mod forecast;
pub mod grpc;
pub mod ledger;
pub mod metrics;
pub mod observer;
#[cfg(feature = "etcd")]
mod server;
#[cfg(feature = "etcd")]
pub mod status_command;

pub use error::Error;
#[cfg(feature = "etcd")]
pub use server::{Listeners, run};
