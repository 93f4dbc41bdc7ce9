//! The integration tests: one file per behaviour, each against real servers and the real binaries.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, and so may what it calls")]

mod allocations;
mod backup;
mod bulk;
mod ceiling;
mod changes;
mod code_key;
mod copy;
mod drain;
mod election;
mod embedded;
mod exhaustion;
mod harness_smoke;
mod herd;
mod k8s;
mod keep_alive;
mod ledger_conformance;
mod limits;
mod links;
mod malformed;
mod many_creates;
mod metrics;
mod nospace;
mod outage;
mod partition;
mod pause;
mod postgres;
mod reclaim;
mod redirects;
mod reservations;
mod rest;
mod sdk;
mod slugs;
mod store_conformance;
mod transfer;
