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

#[test]
fn a_guard_that_is_taken_out_is_missed() {
    println!("{} guards, at most {SEEDS} seeds for each", Mutant::ALL.len());
    let mut unnoticed = Vec::new();
    for mutant in Mutant::ALL {
        let proofs =
            [("simulation", noticed_by_the_simulation(mutant)), ("model", noticed_by_the_model(mutant))];
        for (name, said) in &proofs {
            println!("{mutant:?}, {name}: {}", said.as_deref().unwrap_or("nothing"));
        }
        if proofs.iter().all(|(_, said)| said.is_none()) {
            unnoticed.push(mutant);
        }
    }
    assert_eq!(unnoticed, [], "nothing notices that these guards are missing");
}
