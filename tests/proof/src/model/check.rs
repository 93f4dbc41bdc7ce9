//! Exploration of a world to its end, with a summary of the result.

use std::{sync::Arc, time::Duration};

use stateright::{Checker, HasDiscoveries, Model};

use super::{Action, Bounds, Law, System, witness::Seen};
use crate::Mutant;

/// The result of exploring a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the world.
    pub name: &'static str,
    /// The count of states reached, including repeated ones.
    pub states: usize,
    /// The count of distinct states.
    pub unique: usize,
    /// The number of steps to the farthest state.
    pub depth: usize,
    /// The duration of the exploration.
    pub took: Duration,
    /// The witnesses that were seen.
    pub seen: Arc<Seen>,
    /// The broken laws, each with a schedule that breaks it.
    pub broken: Vec<Broken>,
}

/// A broken law.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The law.
    pub law: Law,
    /// The steps that lead to the violation.
    pub schedule: Vec<Action>,
}

/// Explores a world to its last state, or until `aim` is broken. Without an aim any broken law ends
/// it. With a mutant several laws may break, and the one that its guard stands for not the soonest.
///
/// # Panics
/// Panics if one of the checker's threads panics.
#[must_use]
pub fn check(bounds: Bounds, mutant: Option<Mutant>, aim: Option<Law>) -> Outcome {
    let system = System::new(bounds, mutant);
    let seen = Arc::clone(&system.seen);
    #[expect(
        clippy::disallowed_methods,
        reason = "the exploration runs without tokio, so tokio's clock cannot time it"
    )]
    let started = std::time::Instant::now();
    let end = aim.map_or(HasDiscoveries::AnyFailures, |law| HasDiscoveries::AllOf([law.name()].into()));
    let checker = system.checker().threads(2).finish_when(end).spawn_bfs().join();
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
        seen,
        broken: broken.collect(),
    }
}
