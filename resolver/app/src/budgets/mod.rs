//! Shares and rates: limits on how much one client or one API key may hold or spend.
//!
//! 1. A [`Pool`] counts an amount that is held and given back, such as bytes or calls in progress,
//!    in shares of a client, of a key and of the process.
//! 2. A [`Rate`] is spent and recovers evenly.
//! 3. A [`Lane`] lets a few callers wait until a spent rate has recovered, so that a correct
//!    password or key succeeds beside any number of wrong ones.
//!
//! The amounts stand with their users: `web/src/budgets.rs` for requests, `passwords.rs` for
//! hashes.

mod lane;
mod pool;
mod rate;

pub use lane::Lane;
pub use pool::{BudgetAccount, ExceededShare, Held, Pool, Shares};
pub use rate::{Left, MINUTE, Rate};
