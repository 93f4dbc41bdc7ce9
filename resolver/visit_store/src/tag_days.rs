//! What the counters of tags gain or lose by the visits of links.

use std::collections::BTreeMap;

use links::DomainId;
use visits::{
    Day, Subject, SubjectKey,
    tally::{Counters, Damaged},
};

use crate::{DayDelta, VisitStoreError};

/// Counters of links that a step collects for their tags, in bytes. With it, a step that has to read
/// the counters of years ends with the first link.
pub(crate) const STEP_BYTES: usize = 4 << 20;

/// Counters of a link by day and domain.
#[derive(Debug, Default)]
pub(crate) struct LinkDays(BTreeMap<(Day, DomainId), Counters>);

impl LinkDays {
    /// Adds a row of the link's counters; `part` is the domain as it is stored.
    pub(crate) fn add(&mut self, day: Day, part: i64, counters: &Counters) {
        self.0.entry((day, DomainId::from_stored(part - 1))).or_default().append(counters);
    }
}

/// The sum of the counters that tags gain, or lose. Links of a step are summed up here first: a
/// tag's counters are few and long, and each is written once.
#[derive(Debug, Default)]
pub(crate) struct TagDays {
    sums: BTreeMap<(SubjectKey, Day), Counters>,
    bytes: usize,
}

impl TagDays {
    /// Adds the counters of a link to those of a tag.
    pub(crate) fn add(&mut self, tag: i64, link: &LinkDays) {
        for ((day, domain), counters) in &link.0 {
            self.bytes += counters.bytes();
            for subject in [Subject::Tag(tag, None), Subject::Tag(tag, Some(*domain))] {
                self.sums.entry((subject.key(), *day)).or_default().append(counters);
            }
        }
    }

    /// Returns the bytes that were added.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns what is to be added to the counters of tags, in the order of keys.
    pub(crate) fn gained(&self) -> Result<Vec<DayDelta>, VisitStoreError> {
        self.deltas(Counters::merged)
    }

    /// Returns what is to be added to the counters of tags so that they lose this sum.
    pub(crate) fn lost(&self) -> Result<Vec<DayDelta>, VisitStoreError> {
        self.deltas(Counters::negated)
    }

    fn deltas(
        &self,
        delta: fn(&Counters) -> Result<Counters, Damaged>,
    ) -> Result<Vec<DayDelta>, VisitStoreError> {
        let sums = self.sums.iter();
        sums.map(|((subject, day), sum)| Ok(DayDelta { subject: *subject, day: *day, delta: delta(sum)? }))
            .collect()
    }
}
