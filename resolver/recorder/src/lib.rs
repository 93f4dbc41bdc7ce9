//! The recorder of visits: what requests to the public site led to, on its way to the spool.
//!
//! 1. Each listener's thread records into its own [`VisitBuffer`]. It takes no lock that another
//!    core wants, and allocates nothing: events are copied into an arena of fixed size.
//! 2. A full arena goes over a bounded channel to the spool's thread, which writes it
//!    ([`BlockSink`]) and gives it back. So do the visits of an idle thread, at an interval
//!    ([`Flush::Every`]). With [`Flush::Turn`] the listener's thread writes instead, before the
//!    answers leave.
//! 3. A redirect never waits for the spool's thread. When no arena is spare, visits are dropped and
//!    counted.
//! 4. The times of a buffer's visits strictly increase, also from one arena to the next, because
//!    ids consist of time and thread.
//!
//! Rejected: one queue of visits for all threads. Its head and tail are lines of memory that all
//! cores write, which costs each of them more than everything else that is recorded.

mod buffer;
mod pool;
mod recorder;
mod rules;
mod spooler;

pub use buffer::VisitBuffer;
pub use recorder::{Flush, Recorder, RecorderConfig};
pub use rules::CaptureRules;
pub use spooler::{BlockSink, NoSink, Seen};
