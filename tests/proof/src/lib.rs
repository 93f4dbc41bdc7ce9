//! Proofs that no number is issued twice: the issuer's real core and the resolver's real buffer, over an etcd and a database
//! that fail in every way they may.
//!
//! 1. [`stores`] holds the two compare-and-set stores as values: what etcd and Postgres promise, and nothing else. Each of
//!    their compares can be switched off, as can each guard of the core: see [`Mutant`].
//! 2. [`model`] explores every schedule of a small system with stateright.
//! 3. `simulation` runs long random schedules of a larger one, each from a seed.
//! 4. The mutation check runs both with each guard off in turn, and fails when neither notices.

pub mod model;
pub mod mutant;
pub mod simulation;
pub mod stores;

pub use mutant::Mutant;
