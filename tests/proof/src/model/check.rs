//! Explores a world to its end, and tells what was found.

use std::{sync::Arc, time::Duration};

use stateright::{Checker, HasDiscoveries, Model};

use super::{Action, Bounds, Law, System, Witness};
use crate::Mutant;

/// What the exploration of a world found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The world's name.
    pub name: &'static str,
    /// States that were reached, each as often as it was.
    pub states: usize,
    /// Different states.
    pub unique: usize,
    /// Steps to the farthest state.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What was seen to happen.
    pub seen: Vec<Witness>,
    /// Broken laws, each with a schedule that breaks it. When there is one the rest of the world is
    /// not explored.
    pub broken: Vec<Broken>,
}

/// A broken law.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which.
    pub law: Law,
    /// The steps that lead to it.
    pub schedule: Vec<Action>,
}

/// Explores a world, to its last state or the first broken law.
///
/// # Panics
/// When the checker's threads do.
#[must_use]
pub fn check(bounds: Bounds, mutant: Option<Mutant>) -> Outcome {
    let system = System::new(bounds, mutant);
    let seen = Arc::clone(&system.seen);
    #[expect(
        clippy::disallowed_methods,
        reason = "how long the exploration takes is no matter of tokio's clock"
    )]
    let started = std::time::Instant::now();
    let checker = system.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let law = |name| Law::ALL.into_iter().find(|law| law.name() == name);
    let broken = checker.discoveries().into_iter().filter_map(|(name, path)| {
        let schedule = path.into_actions();
        law(name).map(|law| Broken { law, schedule })
    });
    Outcome {
        name: bounds.name,
        states: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: started.elapsed(),
        seen: seen.list(),
        broken: broken.collect(),
    }
}
