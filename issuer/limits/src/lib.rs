//! Limits on what a client, an API key and the process may hold and spend.
//!
//! 1. [`budgets`] is the table of all limits, with their amounts.
//! 2. [`Connections`] limits the connections of a listener, closes idle ones to make room, and
//!    overdue ones. A [`TimedStream`] records what a connection does; [`grpc`] has what gRPC needs
//!    beside that.
//! 3. A [`Pool`] counts an amount that is held and given back. A [`Rate`] is spent and recovers
//!    evenly; in a [`Lane`] a few callers wait for that. [`KeyPermits`] have callers of one key
//!    wait for each other. A [`Pace`] is the least speed of a body.

mod activity;
pub mod budgets;
mod connections;
pub mod grpc;
pub mod http2_windows;
mod key_permits;
mod lane;
mod pace;
mod pool;
mod rate;
mod resources;
mod seldom;
mod timed_stream;

pub use activity::{Connection, Serving, from_client};
pub use budgets::{Budgets, ConnectionLimits};
pub use connections::{Connections, ListenerLimits, OpenConnection};
pub use key_permits::{KeyPermits, PermitTimeout};
pub use lane::Lane;
pub use pace::{Pace, TooSlow};
pub use pool::{Account, ExceededShare, Held, Pool, Shares, network};
pub use rate::{Left, MINUTE, Rate};
pub use resources::Resources;
pub use seldom::Seldom;
pub use timed_stream::TimedStream;
