//! Reads the rows of a list of visits, the latest first, from any page on.
//!
//! 1. The number of visits and the beginning of a page come from counters; of a quarter hour that a
//!    bound of the list cuts, the rows are counted.
//! 2. A read looks at as many UTC days as have enough visits by their counts, since a day is what a
//!    partition holds. Days without visits take no query.
//!    Rows of tags and of everything are in the order of no index: a read of them looks at as few
//!    quarter hours as their counts allow ([`windows`](super::windows)).
//! 3. Each read continues from the last row's id, so that a long list costs the same everywhere,
//!    and a visit that arrives meanwhile moves no other to the next read.
//! 4. Several subjects, which share no visit, are merged by id. All of them together hold a bounded
//!    number of rows.
//!
//! Visits that arrive between two calls move the pages behind them by as many.

use std::{
    collections::{BTreeMap, BinaryHeap, VecDeque},
    sync::Arc,
};

use visit_store::{Columns, RowQuery, VisitReader, VisitStoreError};
use visits::{
    Day, Subject, TimeRange, VisitId, VisitRow,
    page::{PageStart, find_page, listed},
    tally::QuarterCounts,
};

use super::windows::Windows;

/// Maximum number of rows in one read: a page of the usual largest size takes one.
pub(super) const ROWS_MAX: usize = 5_000;
/// Maximum number of rows that all subjects of a list hold.
const ROWS_HELD: usize = 20_000;
const ROWS_MIN: usize = 16;
/// Maximum number of days in one read: planning a query takes longer for each of them.
const DAYS_MAX: i32 = 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) range: TimeRange,
    pub(super) people_only: bool,
}

impl Selection {
    /// Returns the query of a subject's rows in a part of the range.
    fn query(self, subject: Subject, part: TimeRange) -> RowQuery {
        let ids = part.within(self.range).ids();
        let people_only = self.people_only;
        RowQuery { subject, people_only, from: ids.start, before: ids.end, skip: 0, most: ROWS_MAX }
    }
}

pub(super) struct Reader {
    store: Arc<dyn VisitReader>,
    selection: Selection,
    /// The number of visits on all pages.
    pub(super) total: u64,
    sources: Vec<Source>,
    /// For each source with rows left: an id that no row of it exceeds, and its place.
    heads: BinaryHeap<(VisitId, usize)>,
    skip: u64,
    /// Maximum number of rows in one read of a source.
    most: usize,
    /// Rows that the page lacks.
    pub(super) left: u64,
}

struct Source {
    subject: Subject,
    /// The days that rows are still to be read of, the latest last, with the number of their rows.
    days: Vec<(Day, u64)>,
    /// Rows that were read before have ids from here on.
    before: VisitId,
    skip: u64,
    /// The parts of a day that reads look at; `None` if an index has the rows in order.
    windows: Option<Windows>,
    rows: VecDeque<VisitRow>,
}

impl Reader {
    /// Counts the visits of a list, and finds the beginning of the page of `size` visits behind the
    /// first `skip`.
    pub(super) async fn open(
        store: Arc<dyn VisitReader>,
        subjects: &[Subject],
        mut selection: Selection,
        (skip, size): (u64, u64),
    ) -> Result<Self, VisitStoreError> {
        if let Some(first) = store.rows_from().await? {
            selection.range.from = selection.range.from.max(first.start());
        }
        let mut reader = Self {
            store,
            selection,
            total: 0,
            sources: Vec::new(),
            heads: BinaryHeap::new(),
            skip: 0,
            most: (ROWS_HELD / subjects.len().max(1)).clamp(ROWS_MIN, ROWS_MAX),
            left: size,
        };
        let mut quarters = BTreeMap::new();
        for subject in subjects {
            reader.count(*subject, &mut quarters).await?;
        }
        let (total, start) = find_page(skip, quarters.into_iter().rev());
        reader.total = total;
        match start {
            Some(start) => reader.begin(start),
            None => reader.sources.clear(),
        }
        let heads = reader.sources.iter().enumerate();
        reader.heads = heads.filter_map(|(place, source)| Some((source.bound()?, place))).collect();
        Ok(reader)
    }

    /// Adds the listed visits of a subject to those of each quarter hour.
    async fn count(
        &mut self,
        subject: Subject,
        quarters: &mut BTreeMap<i64, u64>,
    ) -> Result<(), VisitStoreError> {
        let range = self.selection.range;
        if range.is_empty() {
            return Ok(());
        }
        let columns = Columns { quarters: true, ..Columns::default() };
        let counters = self.store.days(subject, range.days(), columns).await?;
        let mut days = Vec::new();
        let mut windows = Windows::of(subject);
        for of_day in counters {
            let day = Day::from_stored(of_day.days.start);
            let mut of_day_listed = 0;
            for (quarter, counts) in QuarterCounts::from_chunks(&of_day.counters.quarters)?.iter() {
                let start = quarter.start(day);
                let listed =
                    self.count_in(subject, start, listed(counts, self.selection.people_only)).await?;
                *quarters.entry(start).or_insert(0) += listed;
                if let Some(windows) = &mut windows {
                    windows.add(start, listed);
                }
                of_day_listed += listed;
            }
            if of_day_listed > 0 {
                days.push((day, of_day_listed));
            }
        }
        if !days.is_empty() {
            let before = range.ids().end;
            self.sources.push(Source { subject, days, before, skip: 0, windows, rows: VecDeque::new() });
        }
        Ok(())
    }

    /// Returns how many of a quarter hour's visits lie in the range.
    async fn count_in(&self, subject: Subject, quarter: i64, listed: u64) -> Result<u64, VisitStoreError> {
        let whole = TimeRange::of_quarter(quarter);
        let part = whole.within(self.selection.range);
        match () {
            () if part == whole || listed == 0 => Ok(listed),
            () if part.is_empty() => Ok(0),
            () => self.store.count_rows(&self.selection.query(subject, part)).await,
        }
    }

    /// Moves all sources to the beginning of a page.
    fn begin(&mut self, start: PageStart) {
        let day = Day::of(start.quarter);
        let before = TimeRange::of_quarter(start.quarter).within(self.selection.range).ids().end;
        for source in &mut self.sources {
            source.days.retain(|(with_rows, _)| *with_rows <= day);
            source.before = before;
        }
        self.skip = start.skip;
        // Rows of a single subject are skipped by the store.
        if let [source] = &mut self.sources[..] {
            source.skip = std::mem::take(&mut self.skip);
            if let Some(windows) = source.windows.as_mut().filter(|_| start.skip > 0) {
                windows.first = Some(VisitId::floor(start.quarter));
            }
        }
    }

    /// Returns the next rows, at most `most`; none at the end of the list.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<VisitRow>, VisitStoreError> {
        let mut rows = Vec::new();
        let wanted = usize::try_from(self.left.saturating_add(self.skip)).unwrap_or(usize::MAX);
        let in_one_read = self.most.min(wanted.max(ROWS_MIN));
        while rows.len() < most {
            let Some((_, place)) = self.heads.pop() else { break };
            let source = &mut self.sources[place];
            match source.rows.pop_front() {
                None => source.read(&*self.store, self.selection, in_one_read).await?,
                Some(_) if self.skip > 0 => self.skip -= 1,
                Some(row) => rows.push(row),
            }
            self.heads.extend(source.bound().map(|bound| (bound, place)));
        }
        self.left = self.left.saturating_sub(rows.len() as u64);
        Ok(rows)
    }
}

impl Source {
    /// Returns an id that no row left exceeds: that of the first row if it was read. `None` if no
    /// rows are left.
    fn bound(&self) -> Option<VisitId> {
        let first = self.rows.front().map(|row| row.id);
        let unread = || Some(self.before.min(VisitId::floor(self.days.last()?.0.next().start())));
        first.or_else(unread)
    }

    /// Reads rows of the latest days that have any left. With fewer than `most` rows they are done.
    async fn read(
        &mut self,
        store: &dyn VisitReader,
        selection: Selection,
        most: usize,
    ) -> Result<(), VisitStoreError> {
        let Some((last, _)) = self.days.last().copied() else { return Ok(()) };
        let first = self.first_day(most + usize::try_from(self.skip).unwrap_or(usize::MAX / 2));
        let days = TimeRange { from: first.start(), before: last.next().start() };
        let query = selection.query(self.subject, days);
        let whole = query.from..query.before.min(self.before);
        let part = match &mut self.windows {
            Some(windows) => windows.next(whole.clone(), most),
            None => whole.clone(),
        };
        let query = RowQuery {
            from: part.start,
            before: part.end,
            skip: std::mem::take(&mut self.skip),
            most,
            ..query
        };
        if query.from < query.before {
            self.rows = store.rows(&query).await?.into();
        }
        match self.rows.back() {
            Some(last) if self.rows.len() == most => {
                self.go_on_before(last.id);
                if let Some(windows) = &mut self.windows {
                    windows.found_enough();
                }
            }
            _ if part.start <= whole.start => self.days.retain(|(day, _)| *day < first),
            _ => self.go_on_before(part.start),
        }
        Ok(())
    }

    /// Makes the next read end before an id, and forgets the days from there on.
    fn go_on_before(&mut self, id: VisitId) {
        self.before = id;
        self.days.retain(|(day, _)| VisitId::floor(day.start()) < id);
    }

    /// Returns the day on which a read begins that is to find so many rows.
    fn first_day(&self, rows: usize) -> Day {
        let (mut found, mut first) = (0, Day::from_stored(0));
        let earliest = self.days.last().map(|(last, _)| last.minus(DAYS_MAX - 1));
        for (day, listed) in self.days.iter().rev().take_while(|(day, _)| Some(*day) >= earliest) {
            first = *day;
            found += listed;
            if found >= rows as u64 {
                break;
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use visits::{DAY, QUARTER};

    use super::*;
    use crate::visits::visit_memory::{MemoryStore, START, bot, link, row};

    fn everything() -> Selection {
        Selection { range: TimeRange { from: START, before: START + 30 * DAY }, people_only: false }
    }

    async fn read(
        store: &MemoryStore,
        subjects: &[Subject],
        selection: Selection,
        skip: u64,
        at_a_time: usize,
    ) -> (u64, Vec<i64>) {
        let page = (skip, u64::MAX);
        let mut reader = Reader::open(Arc::new(store.clone()), subjects, selection, page).await.unwrap();
        let mut ids = Vec::new();
        loop {
            let rows = reader.next(at_a_time).await.unwrap();
            if rows.is_empty() {
                return (reader.total, ids);
            }
            ids.extend(rows.iter().map(|row| row.id.get()));
        }
    }

    fn visits() -> impl Strategy<Value = Vec<VisitRow>> {
        let at = (0..3_i64, 0..3_i64, 0..QUARTER)
            .prop_map(|(day, quarter, at)| day * 2 * DAY + quarter * QUARTER + at);
        prop::collection::vec((at, 1..4_i64, any::<bool>()), 0..80).prop_map(|visits| {
            visits
                .into_iter()
                .map(|(at, number, is_bot)| {
                    let row = row(START + at, number);
                    if is_bot { bot(row) } else { row }
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn lists_of_one_or_several_links_begin_anywhere(
            rows in visits(), skip in 0..90_u64, at_a_time in 1..30_usize, people_only in any::<bool>(),
            from in 0..5 * DAY, len in 0..6 * DAY, subjects in 0..4_i64,
        ) {
            let store = MemoryStore::new(rows.clone());
            let selection = Selection { range: TimeRange { from: START + from, before: START + from + len }, people_only };
            let subjects: Vec<Subject> = match subjects {
                0 => vec![Subject::All(None)],
                links => (1..=links).map(|number| Subject::Link(link(number))).collect(),
            };
            let mut expected: Vec<i64> = rows.iter().filter(|row| {
                subjects.iter().any(|subject| *subject == Subject::All(None) || row.link.map(Subject::Link) == Some(*subject))
                    && selection.range.contains(row.id.micros()) && !(people_only && row.flags.is_bot())
            }).map(|row| row.id.get()).collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (total, ids) = runtime.block_on(read(&store, &subjects, selection, skip, at_a_time));
            prop_assert_eq!(total, expected.len() as u64);
            let first = usize::try_from(skip).unwrap().min(expected.len());
            prop_assert_eq!(&ids[..], &expected[first..]);
        }
    }

    #[tokio::test]
    async fn a_dense_quarter_hour_is_listed_from_any_page() {
        let at = |number: i64| START + if number < 20_000 { number } else { (number - 19_000) * 40_000 };
        let mut rows: Vec<VisitRow> = (0..40_000).map(|number| row(at(number), 1 + number % 2)).collect();
        rows.push(row(START + QUARTER, 3));
        let store = MemoryStore::new(rows.clone());
        let expected: Vec<i64> = rows.iter().rev().map(|row| row.id.get()).collect();
        let links = [1, 2, 3].map(|number| Subject::Link(link(number)));
        for subjects in [&[Subject::All(None)][..], &links] {
            for skip in [0, 1, 9_000, 20_000, 25_000, 39_990] {
                let (total, ids) = read(&store, subjects, everything(), skip, 900).await;
                let expected = &expected[usize::try_from(skip).unwrap()..];
                assert_eq!(total, 40_001);
                assert!(ids[..] == *expected, "from {skip}: {} of {}", ids.len(), expected.len());
            }
        }
    }

    #[tokio::test]
    async fn rows_that_were_removed_for_their_age_are_not_listed() {
        let store = MemoryStore::new(vec![row(START, 1), row(START + DAY, 1)]);
        store.remove_before(Day::of(START + DAY));
        let (total, ids) = read(&store, &[Subject::Link(link(1))], everything(), 0, 10).await;
        assert_eq!((total, ids), (1, vec![row(START + DAY, 1).id.get()]));
    }

    #[tokio::test]
    async fn a_visit_that_arrives_while_a_list_is_read_moves_no_other() {
        let store = MemoryStore::new((0..6_000).map(|number| row(START + number, 1)).collect());
        let shared: Arc<dyn VisitReader> = Arc::new(store.clone());
        let subjects = [Subject::Link(link(1))];
        let mut reader = Reader::open(shared, &subjects, everything(), (0, u64::MAX)).await.unwrap();
        let mut ids = Vec::new();
        loop {
            let rows = reader.next(700).await.unwrap();
            if rows.is_empty() {
                break;
            }
            store.add(row(START + 10_000 + i64::try_from(ids.len()).unwrap(), 1));
            ids.extend(rows.iter().map(|row| row.id));
        }
        let expected: Vec<VisitId> = (0..6_000).rev().map(|number| row(START + number, 1).id).collect();
        assert_eq!(ids, expected);
    }
}
