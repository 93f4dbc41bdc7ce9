//! When a holder asks for numbers ahead of need, and when only for a create that waits.
//!
//! Near the end of a number space a holder that fills its buffer takes numbers from another whose creates wait. Once it hears that
//! one starves, it asks only for creates of its own that found nothing. So a number that is handed over was wanted at that
//! moment, and holders that starve together do not take the last number from each other without end.

use std::time::Duration;

use tokio::time::Instant;

/// How long a holder asks for nothing ahead of need after it last heard that one starves.
const LEAN: Duration = Duration::from_secs(30);

/// What decides whether to ask.
#[derive(Debug, Default)]
pub(super) struct Demand {
    lean_until: Option<Instant>,
    /// Whether a create found nothing since numbers came last.
    unmet: bool,
}

impl Demand {
    /// A create found nothing.
    pub(super) fn is_unmet(&mut self) {
        self.unmet = true;
    }

    /// Numbers came. Creates that still find nothing say so again.
    pub(super) fn is_met(&mut self) {
        self.unmet = false;
    }

    /// Another holder starves, or this one does.
    pub(super) fn save(&mut self, now: Instant) {
        self.lean_until = Some(now + LEAN);
    }

    /// Whether to ask for a block for which the buffer has room.
    pub(super) fn asks(&self) -> bool {
        self.unmet || self.lean_until.is_none_or(|until| Instant::now() >= until)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_saves_asks_only_for_creates_that_wait_until_it_has_heard_nothing_for_a_while() {
        let mut demand = Demand::default();
        assert!(demand.asks(), "ahead of need");
        demand.save(Instant::now());
        assert!(!demand.asks());
        demand.is_unmet();
        assert!(demand.asks(), "a create waits");
        demand.is_met();
        assert!(!demand.asks());
        advance(LEAN).await;
        assert!(demand.asks());
    }
}
