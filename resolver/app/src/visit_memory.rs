//! A store of visits in memory, for tests of what is read: it counts and sorts its rows plainly.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use codes::{KeyspaceIndex, LinkId};
use links::DomainId;
use store::VisitTotals;
use visit_store::{
    Batch, Changes, Columns, DayCounters, Days, DeletionStep, Erased, Erasure, ErasureId, Marks, MarksKey,
    Producer, RowQuery, SpoolId, Standing, StoredText, TextRef, TokenSecret, VisitStore, VisitStoreError,
    WriteError,
};
use visits::{
    AddressSecret, DAY, Day, DaySecret, Flags, Language, Outcome, QUARTER, Slot, StoredAddress, Subject,
    TextHash, TextKey, Thread, VisitId, VisitRow,
    tally::{Counted, Dimension, Quarter, Tally, Values},
};

/// The store. Clones share their rows.
#[derive(Clone, Default)]
pub(crate) struct MemoryStore(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rows: Vec<VisitRow>,
    rows_from: Option<Day>,
    marks: HashMap<MarksKey, Marks>,
    marks_made: usize,
    skipped_most: u64,
}

/// The link with a number.
pub(crate) fn link(number: i64) -> LinkId {
    LinkId::new(KeyspaceIndex::new(1).unwrap(), number.unsigned_abs())
}

/// A person's visit of the link with a number. Visits at the same time differ by their links.
pub(crate) fn row(at: i64, number: i64) -> VisitRow {
    VisitRow {
        link: Some(link(number)),
        id: VisitId::new(at, Slot::new(0).unwrap(), Thread::from_stored(number.to_le_bytes()[0])),
        visitor: 0,
        user_agent: TextHash::EMPTY,
        referrer: TextHash::EMPTY,
        urls: TextHash::EMPTY,
        place: TextHash::EMPTY,
        address: StoredAddress::NONE,
        domain: DomainId::DEFAULT,
        language: Language::NONE,
        flags: Flags::new(Outcome::Redirected, false),
        rule: 0,
    }
}

/// The same visit by a bot.
pub(crate) fn bot(row: VisitRow) -> VisitRow {
    VisitRow { flags: Flags::new(row.flags.outcome(), true), ..row }
}

impl MemoryStore {
    pub(crate) fn new(rows: Vec<VisitRow>) -> Self {
        let store = Self::default();
        store.state().rows = rows;
        store
    }

    pub(crate) fn add(&self, row: VisitRow) {
        self.state().rows.push(row);
    }

    /// Removes rows for their age. Their counters stay.
    pub(crate) fn remove_before(&self, day: Day) {
        self.state().rows_from = Some(day);
    }

    pub(crate) fn marks_made(&self) -> usize {
        self.state().marks_made
    }

    /// The most rows that a read has skipped.
    pub(crate) fn skipped_most(&self) -> u64 {
        self.state().skipped_most
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The rows of a query, the latest first.
    fn find(&self, query: &RowQuery) -> Vec<VisitRow> {
        let state = self.state();
        let first = state.rows_from.map_or(i64::MIN, Day::start);
        let is_found = |row: &&VisitRow| {
            is_of(row, query.subject)
                && (query.from..query.before).contains(&row.id)
                && row.id.micros() >= first
                && !(query.people_only && row.flags.is_bot())
        };
        let mut rows: Vec<VisitRow> = state.rows.iter().filter(is_found).copied().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.id));
        rows
    }

    fn tallies(&self, subject: Subject, days: Days) -> BTreeMap<Day, Tally> {
        let mut tallies: BTreeMap<Day, Tally> = BTreeMap::new();
        for row in self.state().rows.iter().filter(|row| is_of(row, subject)) {
            let at = row.id.micros();
            if (days.first..days.end).contains(&Day::of(at)) {
                tallies.entry(Day::of(at)).or_default().add(&Counted {
                    quarter: Quarter::new(u8::try_from(at.rem_euclid(DAY) / QUARTER).unwrap()).unwrap(),
                    is_bot: row.flags.is_bot(),
                    is_listed: true,
                    is_redirected: true,
                    visitor: Some(row.id.get().unsigned_abs()),
                    address: Some(7),
                    values: Values::of(|dimension| match dimension {
                        Dimension::Country => "DE",
                        Dimension::Outcome => row.flags.outcome().as_str(),
                        _ => "",
                    }),
                });
            }
        }
        tallies
    }
}

fn is_of(row: &VisitRow, subject: Subject) -> bool {
    match subject {
        Subject::Link(link) => row.link == Some(link),
        Subject::All(domain) => row.link.is_some() && domain.is_none_or(|domain| domain == row.domain),
        Subject::Orphans(kind, _) => {
            row.link.is_none() && kind.is_none_or(|kind| row.flags.outcome().orphan() == Some(kind))
        }
        Subject::Tag(..) => false,
    }
}

fn counters(days: std::ops::Range<i32>, tally: &Tally) -> DayCounters {
    let delta = tally.delta();
    DayCounters {
        days,
        total: delta.total,
        bots: delta.bots,
        quarters: delta.quarters,
        dimensions: delta.dimensions,
        visitors: delta.visitors,
        addresses: delta.addresses,
    }
}

#[async_trait]
impl VisitStore for MemoryStore {
    async fn days(
        &self,
        subject: Subject,
        days: Days,
        _: Columns,
    ) -> Result<Vec<DayCounters>, VisitStoreError> {
        let of_day = |(day, tally): (Day, Tally)| counters(day.get()..day.get() + 1, &tally);
        Ok(self.tallies(subject, days).into_iter().map(of_day).collect())
    }

    async fn spans(
        &self,
        subject: Subject,
        days: Days,
        _: Columns,
    ) -> Result<Vec<DayCounters>, VisitStoreError> {
        let tallies = self.tallies(subject, days);
        let (Some((first, _)), Some((last, _))) = (tallies.first_key_value(), tallies.last_key_value())
        else {
            return Ok(Vec::new());
        };
        let mut all = Tally::default();
        tallies.values().for_each(|tally| all.merge(tally));
        let mut span = counters(first.get()..last.get() + 1, &all);
        span.quarters.clear();
        Ok(vec![span])
    }

    async fn link_totals(
        &self,
        links: &[LinkId],
        days: Days,
    ) -> Result<HashMap<LinkId, VisitTotals>, VisitStoreError> {
        let total_of = |link: &LinkId| {
            let tallies = self.tallies(Subject::Link(*link), days);
            let deltas = tallies.values().map(Tally::delta);
            let (total, bots) =
                deltas.fold((0, 0), |(total, bots), one| (total + one.total, bots + one.bots));
            let [total, bots] = [total, bots].map(|sum| u64::try_from(sum).unwrap());
            (total > 0).then_some((*link, VisitTotals { total, bots, last: None }))
        };
        Ok(links.iter().filter_map(total_of).collect())
    }

    async fn rows(&self, query: &RowQuery) -> Result<Vec<VisitRow>, VisitStoreError> {
        assert!(query.before.micros() - query.from.micros() <= 31 * DAY, "a query is of a month at most");
        let rows = self.find(query);
        let mut state = self.state();
        state.skipped_most = state.skipped_most.max(query.skip);
        Ok(rows.into_iter().skip(usize::try_from(query.skip).unwrap()).take(query.most).collect())
    }

    async fn count_rows(&self, query: &RowQuery) -> Result<u64, VisitStoreError> {
        Ok(self.find(query).len() as u64)
    }

    async fn rows_from(&self) -> Result<Option<Day>, VisitStoreError> {
        Ok(self.state().rows_from)
    }

    async fn texts(&self, _: &[TextRef]) -> Result<Vec<StoredText>, VisitStoreError> {
        Ok(Vec::new())
    }

    async fn marks(&self, key: MarksKey) -> Result<Option<Marks>, VisitStoreError> {
        Ok(self.state().marks.get(&key).cloned())
    }

    async fn make_marks(&self, key: MarksKey) -> Result<Marks, VisitStoreError> {
        let (subject, people_only) = (key.subject, key.people_only);
        let (from, before) = (VisitId::floor(key.quarter), VisitId::floor(key.quarter + QUARTER));
        let rows = self.find(&RowQuery { subject, people_only, from, before, skip: 0, most: 0 });
        let every = usize::try_from(Marks::EVERY).unwrap();
        let ids = rows.iter().step_by(every).map(|row| row.id).collect();
        let marks = Marks { total: rows.len() as u64, ids };
        let mut state = self.state();
        state.marks_made += 1;
        state.marks.insert(key, marks.clone());
        Ok(marks)
    }

    async fn migrate(&self) -> Result<(), VisitStoreError> {
        Ok(())
    }

    async fn register(&self, _: SpoolId, _: &str) -> Result<Producer, VisitStoreError> {
        Err(VisitStoreError::NoSlot)
    }

    async fn standing(&self, _: &Producer) -> Result<Standing, VisitStoreError> {
        Ok(Standing::Replaced)
    }

    async fn release(&self, _: &Producer) -> Result<(), VisitStoreError> {
        Ok(())
    }

    async fn store(&self, _: &Producer, _: &Batch, _: i64) -> Result<(), WriteError> {
        Err(WriteError::Fenced)
    }

    async fn changes(&self, _: i64) -> Result<Changes, VisitStoreError> {
        Ok(Changes::default())
    }

    async fn tags_of(&self, _: &[LinkId]) -> Result<HashMap<LinkId, Vec<i64>>, VisitStoreError> {
        Ok(HashMap::new())
    }

    async fn secrets(&self) -> Result<(TextKey, AddressSecret), VisitStoreError> {
        Ok((TextKey::new([1; 16]), AddressSecret::new([2; 16])))
    }

    async fn token_secret(&self) -> Result<TokenSecret, VisitStoreError> {
        Ok(TokenSecret::new([3; 32]))
    }

    async fn day_secret(&self, _: Day) -> Result<Option<DaySecret>, VisitStoreError> {
        Ok(None)
    }

    async fn delete(&self, _: Subject, _: VisitId) -> Result<u64, VisitStoreError> {
        Ok(0)
    }

    async fn erase(&self, _: &Erasure) -> Result<Option<ErasureId>, VisitStoreError> {
        Ok(None)
    }

    async fn erased(&self, _: ErasureId) -> Result<Erased, VisitStoreError> {
        Ok(Erased { deleted: 0, is_done: true })
    }

    async fn delete_rows(&self) -> Result<DeletionStep, VisitStoreError> {
        Ok(DeletionStep { deleted: 0, has_more: false })
    }

    async fn keep(&self, _: Day) -> Result<(), VisitStoreError> {
        Ok(())
    }

    async fn merge(&self) -> Result<bool, VisitStoreError> {
        Ok(false)
    }

    async fn follow_tags(&self) -> Result<bool, VisitStoreError> {
        Ok(false)
    }

    async fn fold_link_visits(&self) -> Result<bool, VisitStoreError> {
        Ok(false)
    }

    async fn latest(&self, _: VisitId, _: usize) -> Result<Vec<VisitRow>, VisitStoreError> {
        Ok(Vec::new())
    }
}
