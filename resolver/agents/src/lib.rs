//! Parser of `User-Agent` headers: browser, operating system, device, and whether it is a bot.
//!
//! 1. The header is a claim. Any client can imitate another one, so nothing here grants anything.
//! 2. No input panics. At most 512 bytes of it are read, and every byte outside printable
//!    ASCII is read as a question mark.
//! 3. A name has at most 64 bytes and no control characters, whatever the input.
//! 4. A bot is what a list of bots knows; unknown agents are people ([`is_bot`]).
//! 5. The rules are those of uap-core, compiled in. [`Cache::new`] builds them, which takes less
//!    than 0.1 s, and 14 MiB (25 MiB once every rule has been tried). So a process needs one cache,
//!    on the thread that stores visits.
//!
//! Rejected: `woothee`, which rests since 2021 and knows no current device; and `iscrawl` for bots,
//! because its cache compares the address, the length and the ends of a text, so that an agent read
//! into the buffer of an earlier one can get the answer of that one.

mod bots;
mod cache;
mod device;
mod parser;
mod words;

pub use bots::{is_bot, is_crawler, is_unfurler};
pub use cache::Cache;
pub use parser::Agent;

/// The number of bytes of a user agent that are read. Visits store no longer ones.
const AGENT_MAX: usize = 512;

/// Returns the bytes of a user agent that are read.
fn head(user_agent: &[u8]) -> &[u8] {
    &user_agent[..user_agent.len().min(AGENT_MAX)]
}
