//! The JSON of the REST API: bodies, queries and answers, each defined once.
//!
//! 1. A type here is all there is to say about its JSON: serde reads or writes it, schemars derives
//!    its schema for the OpenAPI document, and the command line serializes the same type.
//! 2. A field's doc comment is its description in the document. Limits come from the constants that
//!    the code enforces.
//! 3. Fields that Shlink does not have are marked with `x-addition`.
//! 4. Requests are lenient as Shlink is: numbers and flags may be strings ([`Number`], [`Flag`]).
//!    Their values are checked by the application.

mod audit;
mod bulk;
mod bulk_edit;
mod domain;
mod explanation;
mod health;
mod link;
mod live;
mod page;
mod patch;
mod qr_codes;
mod query;
mod reservation;
mod rule;
mod schedule;
mod stats;
mod tag;
mod target;
mod values;
mod visit;
mod webhook;

pub use audit::*;
pub use bulk::*;
pub use bulk_edit::*;
pub use domain::*;
pub use explanation::*;
pub use health::*;
pub use link::*;
pub use live::*;
pub use page::*;
pub use patch::*;
pub use qr_codes::*;
pub use query::*;
pub use reservation::*;
pub use rule::*;
pub use schedule::*;
pub use stats::*;
pub use tag::*;
pub use target::*;
pub use values::*;
pub use visit::*;
pub use webhook::*;
