//! What the counters of a tag gain or lose by the visits of one link.

use std::collections::BTreeMap;

use links::DomainId;
use visits::{Day, Subject};

use crate::{DayDelta, VisitStoreError, columns::ByteColumns};

/// Counters of a link by day and domain.
#[derive(Debug, Default)]
pub(crate) struct LinkDays(BTreeMap<(Day, DomainId), ByteColumns>);

impl LinkDays {
    /// Adds a row of the link's counters; `part` is the domain as it is stored.
    pub(crate) fn add(&mut self, day: Day, part: i64, columns: &ByteColumns) {
        self.0.entry((day, DomainId::from_stored(part - 1))).or_default().append(columns);
    }

    /// Returns what a tag gains from the counters of the link, or loses, in the order of keys.
    pub(crate) fn deltas(&self, tag: i64, is_lost: bool) -> Result<Vec<DayDelta>, VisitStoreError> {
        let mut deltas = BTreeMap::<_, ByteColumns>::new();
        for ((day, domain), columns) in &self.0 {
            for subject in [Subject::Tag(tag, None), Subject::Tag(tag, Some(*domain))] {
                deltas.entry((subject.key(), *day)).or_default().append(columns);
            }
        }
        let delta = |((subject, day), columns): (_, ByteColumns)| {
            let delta = if is_lost { columns.negated()? } else { columns.delta()? };
            Ok(DayDelta { subject, day, delta })
        };
        deltas.into_iter().map(delta).collect()
    }
}
