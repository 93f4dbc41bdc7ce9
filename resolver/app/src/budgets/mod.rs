//! Shares and rates: how much one client or one API key may hold or spend beside all others.
//!
//! 1. A [`Pool`] counts an amount that is held and given back, such as bytes or calls under way, in
//!    shares of a client, of a key and of the process.
//! 2. A [`Rate`] is spent and grows back evenly.
//! 3. A [`Lane`] lets a few callers wait until a spent rate has grown, so that a correct password or
//!    key passes beside any number of wrong ones.
//!
//! The amounts stand with their users: `web/src/budgets.rs` for requests, `passwords.rs` for hashes.

mod lane;
mod pool;
mod rate;

pub use lane::Lane;
pub use pool::{Held, Holder, Pool, Shares, Spent};
pub use rate::{Left, MINUTE, Rate};
