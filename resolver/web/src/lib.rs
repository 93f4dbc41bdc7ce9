//! HTTP building blocks that redirects and the API share: answers, clients, metrics and request
//! ids.
//!
//! 1. This crate knows no links, routes or API calls. The crate `redirect` and the API build the
//!    answers, and the listener routes requests to them.
//! 2. One reader tells who the client behind a proxy is ([`client_limits`]); what it may hold or
//!    spend is for the crate `limits`.
//! 3. A listener's thread polls its own requests. Wake-ups from other threads reach it in groups
//!    ([`wakeups`]), and a call whose client disconnects runs to its end on another runtime
//!    ([`run_to_end`]).

pub mod access_log;
pub mod answer;
pub mod body;
mod client_address;
pub mod client_limits;
pub mod cors;
pub mod request_durations;
pub mod request_id;
pub mod run_to_end;
pub mod visitor_page;
pub mod wakeups;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use answer::{
    Answer, HELD_BACK, HTML, TEXT, answer, charge, empty, hold_back, is_held_back, retry_later,
};
pub use body::{Body, BrokenOff, Piece};

/// Locks a mutex. No code panics while it holds a lock of this crate, and none is held across an
/// await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
