//! The decision between asking for numbers ahead of need and asking only for a waiting create.
//!
//! Near the end of a number space, a holder that fills its buffer takes numbers from another whose
//! creates wait. Once it hears that one starves, it asks only for its own creates that found no
//! number. So a number that is handed over was wanted at that moment, and holders that starve
//! together do not take the last number from each other without end.

use numbers::Millis;

/// How long a holder stops asking ahead of need after it last heard that a holder starves, in
/// milliseconds.
const LEAN_MS: u64 = 30_000;

/// The demand for numbers in one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Demand {
    lean_until: Option<Millis>,
    /// Whether a create found no number since numbers last arrived.
    unmet: bool,
}

impl Demand {
    /// Records that a create found no number.
    pub(super) fn note_unmet(&mut self) {
        self.unmet = true;
    }

    /// Records that numbers arrived. Creates that still find none record it again.
    pub(super) fn note_met(&mut self) {
        self.unmet = false;
    }

    /// Records that another holder starves, or this one does.
    pub(super) fn save(&mut self, now: Millis) {
        self.lean_until = Some(Millis(now.0 + LEAN_MS));
    }

    /// Returns whether to ask for a block that the buffer has room for.
    pub(super) fn asks(&self, now: impl FnOnce() -> Millis) -> bool {
        self.unmet || self.lean_until.is_none_or(|until| now() >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_saves_asks_only_for_creates_that_wait_until_it_has_heard_nothing_for_a_while() {
        let (mut demand, now) = (Demand::default(), Millis(1_000));
        assert!(demand.asks(|| now), "ahead of need");
        demand.save(now);
        assert!(!demand.asks(|| now));
        demand.note_unmet();
        assert!(demand.asks(|| now), "a create waits");
        demand.note_met();
        assert!(!demand.asks(|| now));
        assert!(demand.asks(|| Millis(now.0 + LEAN_MS)));
    }
}
