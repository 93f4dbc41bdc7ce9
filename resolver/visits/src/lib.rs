//! Visits as values: what is recorded of one, its id, its row, and the counters of many.
//!
//! 1. Recording ([`Arena`]) copies bytes into a fixed buffer and allocates nothing.
//! 2. An id ([`VisitId`]) is the time, the producer and the thread of a visit in one number: it
//!    orders visits, serves as a cursor, and is unique.
//! 3. Rows refer to texts by keyed hashes ([`TextKey`]), and to visitors by keys whose secrets are
//!    erased after two days ([`DaySecret`]).
//!
//! Deliberately absent: clocks, files, sockets and databases.

mod address;
mod arena;
mod event;
mod id;
mod network;
mod outcome;
pub mod page;
mod row;
mod secret;
pub mod series;
mod share;
mod subject;
pub mod tally;
mod texts;

pub use address::{AddressMode, StoredAddress};
pub use arena::{Arena, read_block};
pub use event::{Event, Malformed, URL_MAX};
pub use id::{DAY, Day, Days, Month, QUARTER, Slot, Thread, TimeRange, VisitId};
pub use network::AddressNetwork;
pub use outcome::{OrphanKind, Outcome};
pub use row::{BOT, Flags, Language, VisitRow};
pub use secret::{AddressSecret, DaySecret, TextHash, TextKey};
pub use share::tenths_of_percent;
pub use subject::{Subject, SubjectKey};
pub use texts::{PlaceText, Urls};
