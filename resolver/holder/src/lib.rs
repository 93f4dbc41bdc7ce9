//! The holder's side of the number protocol, without clocks, sockets or a database.
//!
//! [`SupplyCore::step`] takes an event and the time, and returns what to do next: call the issuer,
//! call the store, or wait. The crate `supply` carries that out. The model checker and the
//! simulation of `tests/proof` run the same code with their own issuer and store.
//!
//! | module | contents |
//! |---|---|
//! | [`buffer`] | the numbers of the blocks in hand: claims and their fates |
//! | [`keyspace`] | a keyspace's buffer, with the decision when to ask for the next block |
//! | [`core`] | registration, refills and returns, as one state machine |
//! | [`calls`] | the core's calls to issuer and store, and the answers |
//! | [`doubt`] | the verdict on an insert whose outcome is unknown |
//! | [`safety_rule`] | the safety rules, each of which a proof can switch off |

pub mod buffer;
pub mod calls;
pub mod core;
pub mod doubt;
pub mod keyspace;
pub mod safety_rule;

pub use buffer::{Buffer, Choice, Claim, Closed, Entered, EntryId, Fate};
pub use calls::{Answer, Call, Event, Refused, Registered, StoreAnswer, StoreCall};
pub use core::{Beat, Effect, Note, Session, StopReason, SupplyCore};
pub use doubt::{Row, Verdict};
pub use keyspace::{ClaimError, KeyspaceNumbers, Keyspaces, Spec};
pub use safety_rule::{SafetyRule, SafetyRules};
