//! Reads counters of one or several subjects and adds them up.

use visit_store::{Columns, DayCounters, VisitReader, VisitStoreError};
use visits::{
    Day, Subject, TimeRange,
    series::Series,
    tally::{DimensionCounts, QuarterCounts, Uniques},
};

/// The counters of some subjects, which share no visit.
pub(super) struct Counters<'a> {
    pub(super) store: &'a dyn VisitReader,
    pub(super) subjects: &'a [Subject],
}

/// What was counted in all days of a range.
#[derive(Default)]
pub(super) struct Sums {
    /// The first day with visits.
    pub(super) first: Option<Day>,
    pub(super) dimensions: DimensionCounts,
    pub(super) visitors: Uniques,
    pub(super) addresses: Uniques,
}

impl Counters<'_> {
    /// Adds up what is counted by day.
    pub(super) async fn sums(&self, range: TimeRange, has_dimensions: bool) -> Result<Sums, VisitStoreError> {
        let columns =
            Columns { dimensions: has_dimensions, visitors: true, addresses: true, ..Columns::default() };
        let mut sums = Sums::default();
        for subject in self.subjects {
            for span in self.store.spans(*subject, range.days(), columns).await? {
                sums.add(&span)?;
            }
        }
        Ok(sums)
    }

    pub(super) async fn fill(&self, series: &mut Series) -> Result<(), VisitStoreError> {
        let columns = Columns { quarters: series.needs_quarters(), ..Columns::default() };
        for subject in self.subjects {
            for of_day in self.store.days(*subject, series.range.days(), columns).await? {
                let day = Day::from_stored(of_day.days.start);
                if !columns.quarters {
                    series.add(day.start(), of_day.counters.total, of_day.counters.bots);
                    continue;
                }
                for (quarter, counts) in QuarterCounts::from_chunks(&of_day.counters.quarters)?.iter() {
                    series.add(quarter.start(day), counts.total, counts.bots);
                }
            }
        }
        Ok(())
    }
}

impl Sums {
    fn add(&mut self, span: &DayCounters) -> Result<(), VisitStoreError> {
        let first = Day::from_stored(span.days.start);
        self.first = Some(self.first.map_or(first, |known| known.min(first)));
        self.dimensions.merge(&DimensionCounts::from_chunks(&span.counters.dimensions)?);
        self.visitors.merge_chunks("visitors", &span.counters.visitors)?;
        self.addresses.merge_chunks("addresses", &span.counters.addresses)?;
        Ok(())
    }
}
