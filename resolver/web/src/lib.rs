//! What redirects and the API share over HTTP: answers, limits, timeouts and request ids.
//!
//! 1. Nothing here knows links, routes or the API: the crate `redirect` and the API decide what is
//!    answered, and the listener who answers it.
//! 2. A connection that keeps its thread waiting is closed ([`connection_timeouts`]), and what a
//!    client may hold or spend is bounded ([`client_limits`], [`budgets`]).
//! 3. A listener's thread polls what it answers itself. Wake-ups from other threads reach it in
//!    groups ([`wakeups`]), and a call that its client gives up runs to its end elsewhere
//!    ([`run_to_end`]).

pub mod answer;
pub mod body;
pub mod budgets;
pub mod client_limits;
pub mod connection_timeouts;
pub mod request_id;
pub mod run_to_end;
pub mod wakeups;

pub use answer::{Answer, HELD_BACK, HTML, TEXT, answer, empty, hold_back, is_held_back, retry_later};
pub use body::{Body, BrokenOff, Piece};
