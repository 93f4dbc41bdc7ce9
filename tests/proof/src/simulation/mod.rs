//! Long random schedules of a whole system, each from a seed: issuers with the real core, holders with the real buffer, and
//! an etcd and a database that fail in every way they may.
//!
//! 1. A seed decides everything: [`run`] of the same seed is the same run, down to the last event.
//! 2. Faults (`faults`, and the rates that messages are held against) and checkers (`checks`) know nothing of each other.
//! 3. Time is the agenda's. Nothing reads a clock, no thread is started, and no hash map decides an
//!    order. Holders and issuers see it by clocks of their own, which run at different speeds.
//! 4. Beside the faults an operator raises capacities, one holder after another, and clients make,
//!    fill and give up reservations.
//!
//! Rejected: the real supplier on a paused tokio clock. Its order of wake-ups is the runtime's and not the seed's, and its
//! store and its issuer are reached through sockets and SQL.

mod agenda;
mod calm;
mod checks;
mod clock;
mod database;
mod desk;
mod etcd;
mod faults;
mod holder;
mod issuers;
mod plan;
mod rng;
mod rollout;
mod summary;
mod world;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub use summary::{Happening, Summary};

use crate::Mutant;

/// What a run found, with all that is needed to see it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// When, in simulated milliseconds; none when the code under test panicked.
    pub at_ms: Option<u64>,
    /// What did not hold.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, at_ms, what } = self;
        match at_ms {
            Some(at_ms) => write!(f, "seed {seed} at {at_ms} ms: {what}"),
            None => write!(f, "seed {seed}: {what}"),
        }
    }
}

impl std::error::Error for Violation {}

/// Runs one seed.
///
/// # Errors
/// When something did not hold. A panic of the code under test is one of these things.
pub fn run(seed: u64, mutant: Option<Mutant>) -> Result<Summary, Violation> {
    let run = AssertUnwindSafe(|| {
        let mut world = world::World::new(seed, mutant);
        world.run().map(|()| world.summary)
    });
    match catch_unwind(run) {
        Ok(Ok(summary)) => Ok(summary),
        Ok(Err((at_ms, what))) => Err(Violation { seed, at_ms: Some(at_ms), what }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(Violation { seed, at_ms: None, what: format!("the code under test panicked: {text}") })
        }
    }
}
