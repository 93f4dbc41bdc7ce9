//! A simulation of long random schedules of a whole system, each from a seed. Issuers and holders
//! run their real cores, over an etcd and a database that fail in every permitted way.
//!
//! 1. A seed determines everything: [`run`] of the same seed is the same run, down to the last
//!    event.
//! 2. Faults (`faults`, and the rates at which messages fail) and checkers (`checks`) are
//!    independent of each other.
//! 3. The agenda provides the time. No code reads a real clock, no thread is started, and no hash
//!    map determines an order.
//! 4. Beside the faults an operator raises capacities, one holder after another, and clients make,
//!    fill and give up reservations.
//!
//! Rejected: the real supplier on a paused tokio clock. The runtime and not the seed would
//! determine its order of wake-ups, and it reaches its store and its issuer through SQL and
//! sockets.

mod agenda;
mod calm;
mod checks;
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

/// A violation found by a run, with the data to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed of the run.
    pub seed: u64,
    /// The simulated time in milliseconds; `None` if the code under test panicked.
    pub at_ms: Option<u64>,
    /// A description of the violation.
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
/// Returns [`Violation`] if a check failed or the code under test panicked.
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
