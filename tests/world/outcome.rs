//! Counts of the events in a run. An event that never happens proves nothing.

/// The counts of one run, or their sums over many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) acknowledged: u64,
    pub(super) slugs: u64,
    pub(super) looked_up: u64,
    pub(super) exhausted: u64,
    pub(super) unknown: u64,
    pub(super) crashes: u64,
    pub(super) elections: u64,
    pub(super) outages: u64,
    pub(super) fail_overs: u64,
    pub(super) put_back: u64,
    pub(super) ledgers_put_back: u64,
    pub(super) lost: u64,
    pub(super) changed: u64,
    pub(super) moved: u64,
    pub(super) renamed: u64,
    pub(super) on_domains: u64,
    pub(super) isolated: u64,
    pub(super) reserved: u64,
    pub(super) filled: u64,
    pub(super) given_up: u64,
    pub(super) unheard: u64,
    pub(super) rolled_out: u64,
    pub(super) domains: u64,
    pub(super) long_outages: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.slugs, other.slugs),
            (&mut self.looked_up, other.looked_up),
            (&mut self.exhausted, other.exhausted),
            (&mut self.unknown, other.unknown),
            (&mut self.crashes, other.crashes),
            (&mut self.elections, other.elections),
            (&mut self.outages, other.outages),
            (&mut self.fail_overs, other.fail_overs),
            (&mut self.put_back, other.put_back),
            (&mut self.ledgers_put_back, other.ledgers_put_back),
            (&mut self.lost, other.lost),
            (&mut self.changed, other.changed),
            (&mut self.moved, other.moved),
            (&mut self.renamed, other.renamed),
            (&mut self.on_domains, other.on_domains),
            (&mut self.isolated, other.isolated),
            (&mut self.reserved, other.reserved),
            (&mut self.filled, other.filled),
            (&mut self.given_up, other.given_up),
            (&mut self.unheard, other.unheard),
            (&mut self.rolled_out, other.rolled_out),
            (&mut self.domains, other.domains),
            (&mut self.long_outages, other.long_outages),
        ];
        pairs.into_iter().for_each(|(sum, one)| *sum += one);
    }

    /// Asserts that each event has happened often enough to prove something.
    pub(super) fn expect_enough(&self, seeds: u64) {
        let Self { acknowledged, slugs, looked_up, exhausted, unknown, crashes, .. } = *self;
        let Self { elections, outages, fail_overs, put_back, ledgers_put_back, lost, .. } = *self;
        let Self { changed, moved, renamed, on_domains, isolated, .. } = *self;
        let Self { reserved, filled, given_up, unheard, rolled_out, domains, long_outages, .. } = *self;
        let counts = [acknowledged, slugs, looked_up, exhausted, unknown, crashes, elections, outages];
        let rare = [fail_overs, put_back, ledgers_put_back, lost, changed, moved, on_domains, isolated];
        let added = [renamed, reserved, filled, given_up, unheard, rolled_out, domains, long_outages];
        assert!(
            counts.into_iter().chain(rare).chain(added).all(|count| count >= seeds / 300),
            "too rare to prove anything: {self:?}"
        );
    }
}
