//! Arguments that several commands have.

mod client;
mod database;

pub use client::{ServerArgs, ShowArgs, TableArgs};
pub use database::{Database, DatabaseArgs, VisitsStoreArgs};
