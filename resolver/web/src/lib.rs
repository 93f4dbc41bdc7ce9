//! HTTP building blocks that redirects and the API share: answers, limits, timeouts and request
//! ids.
//!
//! 1. This crate knows no links, routes or API calls. The crate `redirect` and the API build the
//!    answers, and the listener routes requests to them.
//! 2. Connections that make no progress are closed ([`connection_timeouts`]). The resources that a
//!    client may hold or spend are bounded ([`client_limits`], [`budgets`]). One reader tells who
//!    the client behind a proxy is ([`client_address`]).
//! 3. A listener's thread polls its own requests. Wake-ups from other threads reach it in groups
//!    ([`wakeups`]), and a call whose client disconnects runs to its end on another runtime
//!    ([`run_to_end`]).

pub mod access_log;
pub mod answer;
pub mod body;
pub mod budgets;
pub mod client_address;
pub mod client_limits;
pub mod connection_timeouts;
pub mod http2_windows;
pub mod request_durations;
pub mod request_id;
pub mod run_to_end;
pub mod server_sent_events;
pub mod visitor_page;
pub mod wakeups;

pub use answer::{Answer, HELD_BACK, HTML, TEXT, answer, empty, hold_back, is_held_back, retry_later};
pub use body::{Body, BrokenOff, Piece};
