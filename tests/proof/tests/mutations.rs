//! The mutation check: with any one guard taken out, the simulation or the model must notice.

use proof::{Mutant, simulation};

/// A proof that may notice that a guard is missing: its name, and what it says.
type Detector = (&'static str, fn(Mutant) -> Option<String>);

/// All of them, the quickest first. The first that notices is enough.
const DETECTORS: &[Detector] = &[("simulation", notices_in_simulation)];

/// Seeds that the simulation may need.
const SEEDS: u64 = 2_000;

fn notices_in_simulation(mutant: Mutant) -> Option<String> {
    let violation = (0..SEEDS).find_map(|seed| simulation::run(seed, Some(mutant)).err())?;
    Some(violation.to_string())
}

#[test]
fn a_guard_that_is_taken_out_is_missed() {
    let mut unnoticed = Vec::new();
    for mutant in Mutant::ALL {
        let noticed = DETECTORS.iter().find_map(|(name, notices)| Some((name, notices(mutant)?)));
        match noticed {
            Some((name, what)) => println!("{mutant:?} is missed by the {name}: {what}"),
            None => unnoticed.push(mutant),
        }
    }
    assert_eq!(unnoticed, [], "nothing notices that these guards are missing");
}
