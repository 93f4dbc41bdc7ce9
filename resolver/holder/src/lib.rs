//! The holder's side of the number protocol, without clocks, sockets or a database.
//!
//! [`Core::step`] takes an event and the time, and says what to do next: call the issuer, ask the
//! store, or wait. The crate `supply` carries that out; the model checker and the simulation of
//! `tests/proof` run the same code against machines of their own.
//!
//! | module | what it holds |
//! |---|---|
//! | [`buffer`] | the numbers of the blocks in hand: claims and their fates |
//! | [`keyspace`] | a buffer with what decides when to ask for the next block |
//! | [`core`] | registration, refills and returns, as one state machine |
//! | [`calls`] | what the core asks for, and the answers |
//! | [`doubt`] | the verdict on an insert whose outcome is unknown |
//! | [`ceilings`] | how long the end of the allocated numbers may be believed |
//! | [`rules`] | the rules that a proof switches off |

pub mod buffer;
pub mod calls;
pub mod ceilings;
pub mod core;
mod demand;
pub mod doubt;
pub mod keyspace;
pub mod rules;
#[cfg(test)]
mod tail;

pub use buffer::{Buffer, Claim, Closed, Entered, EntryId, Fate};
pub use calls::{Answer, Call, Event, Refused, Registered, Returning, StoreAnswer, StoreCall};
pub use ceilings::{Ceilings, Moment};
pub use core::{Beat, Core, Effect, Lost, Note, Session};
pub use doubt::{Row, Verdict};
pub use keyspace::{ClaimError, Keyspace, Keyspaces, Spec};
pub use rules::{Rule, Rules};
