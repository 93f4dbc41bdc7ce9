//! Import and export of links: reads the exports of other systems, and writes an export that this
//! crate reads back.
//!
//! Pure code over readers and writers. An input is never held whole, and a malformed item is
//! reported and skipped. The rules for links are not applied here; they are applied where links are
//! created.

mod bitly;
mod csv;
mod dub;
mod encoding;
mod export;
mod header;
mod hosted;
mod item;
mod json;
mod kutt;
mod live;
mod rebrandly;
mod records;
mod row;
mod shlink;
mod shortio;
mod source;
pub mod spreadsheet;
mod table;
mod visit;
mod yourls;

pub use csv::{harmless, link_column, split_tags};
pub use export::{write_csv, write_csv_head, write_ndjson, write_record};
pub use header::{write_end, write_header};
pub use json::{Shape, each_item};
pub use live::{LinkPage, LiveSource};
pub use records::{Record, RecordError, Records, is_same_name};
pub use row::{LeftOut, Row, RowError, Secret};
pub use source::{Source, each_row};
pub use visit::{SingleVisit, each_visit, read_visit};
