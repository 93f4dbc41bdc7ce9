//! Statistics of visits: totals, a series over time, dimensions, visitors and addresses.
//!
//! 1. They come from counters alone, so visits count whose rows were not kept or are gone, and a
//!    range of years costs no more than its months.
//! 2. Series and totals are exact to the quarter hour: the range is extended to whole ones.
//!    Dimensions, visitors and addresses are kept by UTC day, and count the days that the range
//!    touches.
//! 3. A visitor has another key each day, so the number of visitors of a range is that of its days,
//!    added up. Addresses are told apart over the whole range. Bots count as neither.
//! 4. What was counted of several links is added up; a visitor of two of them counts once.

use std::cmp::Reverse;

use jiff::{Timestamp, tz::TimeZone};
use links::{api_key::Grant, scope::Scope};
use visit_store::{Columns, DayCounters, VisitReader, VisitStoreError};
use visits::{
    Day, Subject, TimeRange,
    series::{Interval, Point, Series},
    tally::{Dimension, DimensionCounts, Estimate, OTHER, QuarterCounts, Uniques},
};

use crate::{
    Answer, AppError, FieldErrors, LinkService, authorize::require, list_visits::range_of,
    visit_subjects::VisitsOf,
};

/// Default number of values of a dimension.
pub const TOP: usize = 20;
/// Maximum number of values of a dimension.
pub const TOP_MAX: usize = 1_000;

/// A request for statistics.
#[derive(Clone, Debug)]
pub struct StatsRequest {
    /// The visits' subject.
    pub of: VisitsOf,
    /// The earliest second; `None` for the day of the first visit.
    pub start: Option<Timestamp>,
    /// The latest second, which is included; `None` for now.
    pub end: Option<Timestamp>,
    /// The distance between points; `None` for one that fits the range.
    pub interval: Option<Interval>,
    /// The time zone that points follow.
    pub zone: TimeZone,
    /// Whether visits of bots are left out.
    pub people_only: bool,
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
    /// Maximum number of values of each, at most [`TOP_MAX`]. The others are added up.
    pub top: usize,
    /// Whether the range of equal length before is counted too.
    pub compares: bool,
}

/// How many visits there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitCount {
    /// All visits.
    pub total: u64,
    /// Visits of bots.
    pub bots: u64,
}

/// Visits of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCount {
    /// The range, in whole quarter hours.
    pub range: TimeRange,
    /// All of its visits.
    pub visits: VisitCount,
    /// The series: the beginning of each interval in microseconds since 1970, and its visits.
    pub points: Vec<(i64, VisitCount)>,
}

/// The values of a dimension, the most frequent first. [`OTHER`] is the last.
pub type RankedValues = Vec<(String, VisitCount)>;

/// Statistics of visits.
#[derive(Clone, Debug)]
pub struct VisitStats {
    /// Visits of the range.
    pub current: RangeCount,
    /// The distance between points.
    pub interval: Interval,
    /// The first and the last UTC day that dimensions, visitors and addresses count.
    pub days: (Day, Day),
    /// Values of dimensions.
    pub dimensions: Vec<(Dimension, RankedValues)>,
    /// Visitors of each day, added up.
    pub visitors: Estimate,
    /// Distinct addresses.
    pub addresses: Estimate,
    /// Visits of the range of equal length before.
    pub previous: Option<RangeCount>,
}

impl VisitCount {
    /// Makes a count of signed sums, which are negative only while a deletion is being counted.
    fn new((total, bots): (i64, i64), people_only: bool) -> Self {
        let [total, bots] = [total, bots].map(|count| u64::try_from(count).unwrap_or(0));
        if people_only { Self { total: total.saturating_sub(bots), bots: 0 } } else { Self { total, bots } }
    }
}

impl LinkService {
    /// Computes statistics of visits that a key sees. `wrong` holds the parameters that the adapter
    /// could not read.
    pub fn visit_stats<'a>(
        &'a self,
        request: StatsRequest,
        mut wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, VisitStats> {
        Box::pin(async move {
            require(by, Scope::Visits)?;
            let now = self.domain_cache.now();
            check(&request, now, &mut wrong);
            wrong.finish()?;
            if !by.limits.sees_orphans() && matches!(request.of, VisitsOf::Orphans { .. }) {
                return Err(AppError::LimitedKey);
            }
            let subjects = self.visit_subjects(&request.of, by).await?;
            let _turn = self.turns.queries.take(by.id).await?;
            compute(&Counters { store: &*self.visits, subjects: &subjects }, &request, now).await
        })
    }
}

/// Records what is wrong with a request.
fn check(request: &StatsRequest, now: Timestamp, wrong: &mut FieldErrors) {
    let end = request.end.unwrap_or(now);
    if request.start.is_some_and(|start| start > end) {
        let field = if request.end.is_some() { "endDate" } else { "startDate" };
        let expected = if request.end.is_some() { "a time from startDate on" } else { "a time in the past" };
        wrong.add(field, format!("expected {expected}"));
    }
    if !(1..=TOP_MAX).contains(&request.top) {
        wrong.add("top", format!("expected a number from 1 to {TOP_MAX}"));
    }
}

async fn compute(
    counters: &Counters<'_>,
    request: &StatsRequest,
    now: Timestamp,
) -> Result<VisitStats, AppError> {
    let asked = range_of(request.start, Some(request.end.unwrap_or(now)), now).in_quarters();
    let sums = counters.sums(asked, !request.dimensions.is_empty()).await?;
    let first = sums.first.unwrap_or(Day::of(asked.before - 1)).start();
    let from = if request.start.is_some() { asked.from } else { first.max(asked.from) };
    let range = TimeRange { from, ..asked };
    let interval = request.interval.unwrap_or_else(|| Interval::fitting(range));
    let days = range.days();
    let earlier = TimeRange { from: range.from.saturating_sub(range.len()), before: range.from };
    // Before a range without a beginning there is nothing.
    let previous = match request.compares && request.start.is_some() {
        true => Some(count(counters, earlier, interval, request).await?),
        false => None,
    };
    let ranked = |dimension: &Dimension| (*dimension, rank(&sums.dimensions, *dimension, request));
    Ok(VisitStats {
        current: count(counters, range, interval, request).await?,
        interval,
        days: (days.first, days.end.minus(1)),
        dimensions: request.dimensions.iter().map(ranked).collect(),
        visitors: sums.visitors.estimate(),
        addresses: sums.addresses.estimate(),
        previous,
    })
}

async fn count(
    counters: &Counters<'_>,
    range: TimeRange,
    interval: Interval,
    request: &StatsRequest,
) -> Result<RangeCount, AppError> {
    let series = Series::new(range, interval, &request.zone);
    let mut series = series.map_err(|error| AppError::invalid("interval", error.to_string()))?;
    counters.fill(&mut series).await?;
    let point = |Point { start, total, bots }: &Point| {
        (*start, VisitCount::new((*total, *bots), request.people_only))
    };
    Ok(RangeCount {
        range,
        visits: VisitCount::new(series.sum(), request.people_only),
        points: series.points.iter().map(point).collect(),
    })
}

/// Keeps the first `most` values of a ranking. The others are added to [`OTHER`], so that the sum
/// stays the same.
pub fn keep_first(values: RankedValues, most: usize) -> RankedValues {
    let (mut other, mut values): (RankedValues, RankedValues) =
        values.into_iter().partition(|(value, _)| value == OTHER);
    other.extend(values.split_off(most.min(values.len())));
    let rest = other.iter().fold(VisitCount::default(), |sum, (_, count)| VisitCount {
        total: sum.total.saturating_add(count.total),
        bots: sum.bots.saturating_add(count.bots),
    });
    values.extend((rest.total > 0).then(|| (OTHER.to_owned(), rest)));
    values
}

/// Returns the most frequent values of a dimension.
fn rank(counts: &DimensionCounts, dimension: Dimension, request: &StatsRequest) -> RankedValues {
    let values = counts.values(dimension).map(|(value, count)| {
        (value.to_owned(), VisitCount::new((count.total, count.bots), request.people_only))
    });
    let mut values: RankedValues = values.filter(|(_, count)| count.total > 0).collect();
    // Stable, so that equal counts stay in the order of their texts.
    values.sort_by_key(|(_, count)| Reverse(count.total));
    keep_first(values, request.top)
}

/// The counters of some subjects, which share no visit.
struct Counters<'a> {
    store: &'a dyn VisitReader,
    subjects: &'a [Subject],
}

/// Counts of all days of a range.
#[derive(Default)]
struct Sums {
    first: Option<Day>,
    dimensions: DimensionCounts,
    visitors: Uniques,
    addresses: Uniques,
}

impl Counters<'_> {
    async fn sums(&self, range: TimeRange, has_dimensions: bool) -> Result<Sums, VisitStoreError> {
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

    async fn fill(&self, series: &mut Series) -> Result<(), VisitStoreError> {
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

#[cfg(test)]
mod tests {
    use visits::{DAY, QUARTER, tally::ValueCount};

    use super::*;
    use crate::visits::visit_memory::{MemoryStore, START, bot, link, row};

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_microsecond(micros).unwrap()
    }

    fn request() -> StatsRequest {
        StatsRequest {
            of: VisitsOf::Links { domain: None },
            start: Some(at(START)),
            end: Some(at(START + 2 * DAY - 1)),
            interval: Some(Interval::Day),
            zone: TimeZone::UTC,
            people_only: false,
            dimensions: vec![Dimension::Country],
            top: TOP,
            compares: false,
        }
    }

    async fn computed(request: &StatsRequest) -> VisitStats {
        let times = [-DAY, 0, QUARTER, DAY, DAY + QUARTER, 2 * DAY - 1, 2 * DAY];
        let mut rows: Vec<_> = times.iter().map(|time| row(START + time, 1)).collect();
        rows.push(bot(row(START + 5, 1)));
        rows.push(row(START + 6, 2));
        let store = MemoryStore::new(rows);
        let subjects = [1, 2].map(|number| Subject::Link(link(number)));
        compute(&Counters { store: &store, subjects: &subjects }, request, at(START + 10 * DAY))
            .await
            .unwrap()
    }

    fn totals(count: &RangeCount) -> Vec<u64> {
        count.points.iter().map(|(_, count)| count.total).collect()
    }

    #[tokio::test]
    async fn visits_of_several_links_are_added_up_by_day_and_by_quarter_hour() {
        let stats = computed(&request()).await;
        let count = |total, bots| VisitCount { total, bots };
        assert_eq!((stats.current.visits, totals(&stats.current)), (count(7, 1), vec![4, 3]));
        assert_eq!(stats.current.range, TimeRange { from: START, before: START + 2 * DAY });
        assert_eq!(stats.visitors, Estimate { count: 6, is_exact: true }, "without the bot");
        assert_eq!(stats.addresses.count, 1);
        assert_eq!(stats.dimensions, [(Dimension::Country, vec![("DE".to_owned(), count(7, 1))])]);
        let zone = TimeZone::get("Asia/Kolkata").unwrap();
        let stats = computed(&StatsRequest { zone, ..request() }).await;
        assert_eq!(totals(&stats.current), [4, 2, 1], "days begin at 18:30 of UTC");
        let people = computed(&StatsRequest { people_only: true, ..request() }).await;
        assert_eq!((people.current.visits, totals(&people.current)), (count(6, 0), vec![3, 3]));
    }

    #[tokio::test]
    async fn a_range_is_compared_with_the_one_before() {
        let stats = computed(&StatsRequest { compares: true, ..request() }).await;
        let previous = stats.previous.unwrap();
        assert_eq!(previous.range, TimeRange { from: START - 2 * DAY, before: START });
        assert_eq!((previous.visits.total, totals(&previous)), (1, vec![0, 1]));
    }

    #[tokio::test]
    async fn without_a_start_the_range_begins_on_the_day_of_the_first_visit() {
        let stats = computed(&StatsRequest { start: None, interval: None, ..request() }).await;
        assert_eq!(stats.current.range.from, START - DAY);
        assert_eq!((stats.interval, stats.current.visits.total), (Interval::Hour, 8));
        assert_eq!(stats.days, (Day::of(START - DAY), Day::of(START + DAY)));
        let (store, open) = (MemoryStore::default(), StatsRequest { start: None, ..request() });
        let none = compute(&Counters { store: &store, subjects: &[] }, &open, at(START)).await.unwrap();
        assert_eq!(totals(&none.current), [0]);
    }

    #[tokio::test]
    async fn a_series_of_too_many_points_is_refused() {
        let start = Some(at(START - 1_000 * DAY));
        let request = StatsRequest { start, interval: Some(Interval::QuarterHour), ..request() };
        let store = MemoryStore::default();
        let error =
            compute(&Counters { store: &store, subjects: &[] }, &request, at(START)).await.unwrap_err();
        let AppError::Invalid(fields) = error else { panic!("expected a wrong field, found {error}") };
        assert_eq!(fields[0].field, "interval");
        assert!(fields[0].expected.contains("15min"), "{fields:?}");
    }

    #[test]
    fn values_beyond_the_top_are_added_up() {
        let mut counts = DimensionCounts::default();
        for (value, total, bots) in [("a", 3, 3), ("b", 5, 0), (OTHER, 9, 1), ("c", 4, 1), ("d", -1, 0)] {
            counts.add(Dimension::Browser, value, ValueCount { total, bots });
        }
        let ranked = |top, people_only| {
            let ranked = rank(&counts, Dimension::Browser, &StatsRequest { top, people_only, ..request() });
            ranked.into_iter().map(|(value, count)| (value, count.total, count.bots)).collect::<Vec<_>>()
        };
        let value = |value: &str, total, bots| (value.to_owned(), total, bots);
        assert_eq!(ranked(2, false), [value("b", 5, 0), value("c", 4, 1), value(OTHER, 12, 4)]);
        assert_eq!(ranked(1, true), [value("b", 5, 0), value(OTHER, 11, 0)]);
    }

    #[test]
    fn all_wrong_parameters_are_named() {
        let wrong = |request: &StatsRequest| {
            let mut wrong = FieldErrors::default();
            check(request, at(START), &mut wrong);
            match wrong.finish() {
                Err(AppError::Invalid(fields)) => fields.into_iter().map(|field| field.field).collect(),
                _ => Vec::new(),
            }
        };
        assert!(wrong(&request()).is_empty());
        let late = StatsRequest { start: Some(at(START + 9 * DAY)), top: 0, ..request() };
        assert_eq!(wrong(&late), ["endDate", "top"]);
        let open = StatsRequest { start: None, compares: true, top: TOP_MAX + 1, ..request() };
        assert_eq!(wrong(&open), ["top"]);
        let early = StatsRequest { start: Some(at(START + 1)), end: None, ..request() };
        assert_eq!(wrong(&early), ["startDate"]);
    }
}
