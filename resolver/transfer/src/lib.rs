//! Moves links between systems: reads what others export, and writes what this one reads back.
//!
//! Pure code over readers and writers: an input is never held whole, a bad item is told and left out, and what a row may be here is
//! decided where links are created.

mod csv;
mod export;
mod header;
mod item;
mod kutt;
mod objects;
mod row;
mod scan;
mod shlink;
mod source;
mod table;
mod yourls;

pub use export::{CsvRows, write_csv, write_ndjson};
pub use header::{write_end, write_header};
pub use row::{LeftOut, Row, RowError, Secret};
pub use source::{Rows, Source, SourceError, rows};
