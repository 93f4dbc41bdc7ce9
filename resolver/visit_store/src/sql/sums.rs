//! Sums of counters by subject and day. A subject's counters are few and long, and each is written
//! once.

use std::collections::BTreeMap;

use visits::{
    Day, Subject, SubjectKey,
    tally::{Counters, Damaged},
};

use crate::{DayDelta, Result};

#[derive(Debug, Default)]
pub(crate) struct Sums {
    sums: BTreeMap<(SubjectKey, Day), Counters>,
    pub(crate) bytes: usize,
}

impl Sums {
    /// Adds counters of a day to those of some subjects.
    pub(crate) fn add(&mut self, subjects: impl IntoIterator<Item = Subject>, day: Day, counters: &Counters) {
        self.bytes += counters.bytes();
        for subject in subjects {
            self.sums.entry((subject.key(), day)).or_default().append(counters);
        }
    }

    /// Returns the changes that the sums make, in the order of keys: [`Counters::merged`] adds
    /// them, and [`Counters::negated`] takes them away.
    pub(crate) fn deltas(&self, change: fn(&Counters) -> Result<Counters, Damaged>) -> Result<Vec<DayDelta>> {
        let deltas = self
            .sums
            .iter()
            .map(|((subject, day), sum)| Ok(DayDelta { subject: *subject, day: *day, delta: change(sum)? }));
        deltas.collect()
    }
}
