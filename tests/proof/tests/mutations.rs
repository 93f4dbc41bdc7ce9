//! The mutation check: with any one guard off, the simulation or the model must detect its absence.

use proof::{
    Mutant,
    model::{Outcome, aimed_at, check},
    simulation,
};

/// The maximum number of seeds that the simulation gets for a mutant.
const SEEDS: u64 = 3_000;

/// Returns the violation that the simulation finds with this guard off, with its seed.
fn noticed_by_the_simulation(mutant: Mutant) -> Option<String> {
    let violation = (0..SEEDS).find_map(|seed| simulation::run(seed, Some(mutant)).err())?;
    Some(violation.to_string())
}

/// Returns the law that breaks in the model's world that is aimed at this guard, with the size of
/// the exploration up to there.
fn noticed_by_the_model(mutant: Mutant) -> Option<String> {
    let (bounds, law) = aimed_at(mutant)?;
    let outcome = check(bounds, Some(mutant), Some(law));
    let broken = outcome.broken.iter().find(|broken| broken.law == law)?;
    let Outcome { name, states, unique, depth, .. } = &outcome;
    let (steps, law) = (broken.schedule.len(), law.name());
    Some(format!("{law} (after {steps} steps; {name}: {states} states, {unique} different, depth {depth})"))
}

/// Returns how the proofs notice that a guard is off: the model, if one of its worlds is aimed at
/// the guard, and otherwise the simulation.
fn noticed(mutant: Mutant) -> Option<String> {
    if aimed_at(mutant).is_some() { noticed_by_the_model(mutant) } else { noticed_by_the_simulation(mutant) }
}

#[expect(clippy::print_stdout, reason = "what notices a guard belongs to the proof")]
fn are_missed(mutants: impl Iterator<Item = Mutant>) {
    let mut unnoticed = Vec::new();
    for mutant in mutants {
        let found = noticed(mutant);
        println!("{mutant:?}: {}", found.as_deref().unwrap_or("nothing"));
        if found.is_none() {
            unnoticed.push(mutant);
        }
    }
    assert_eq!(unnoticed, [], "nothing notices that these guards are missing");
}

#[test]
fn a_guard_that_is_taken_out_is_missed() {
    are_missed(Mutant::ALL.into_iter().step_by(4));
}

mod long {
    use super::*;

    #[test]
    fn every_guard_that_is_taken_out_is_missed() {
        are_missed(Mutant::ALL.into_iter());
    }
}
