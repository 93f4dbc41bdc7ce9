//! Proofs that no number is issued twice, even if etcd and the database fail in every permitted
//! way. They run the real cores of issuer and holder.
//!
//! 1. [`stores`] models the two compare-and-set stores as values: the guarantees of etcd and
//!    Postgres, and nothing else. Each of their compares can be switched off, as can each guard of
//!    the cores: see [`Mutant`].
//! 2. [`model`] explores every schedule of a small system with stateright.
//! 3. [`simulation`] runs long random schedules of a larger system, each from a seed.
//! 4. `tail` uses number spaces up: no holder hears of the end too early, and all hear of it.
//! 5. The mutation check runs both with one guard off at a time, and fails if neither detects its
//!    absence.

mod messages;
pub mod model;
pub mod mutant;
pub mod simulation;
pub mod stores;
#[cfg(test)]
mod tail;

pub use mutant::Mutant;
