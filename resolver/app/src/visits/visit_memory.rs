//! A store of visits in memory, for tests of what is read: it counts and sorts its rows plainly.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use codes::{KeyspaceIndex, LinkId};
use links::{
    DomainId,
    api_key::{ApiKeyId, Grant, KeyLimits, SecretNumber},
    scope::Scopes,
};
use store::{Done, Lane, Operation};
use visit_store::{Columns, DayCounters, Days, RowQuery, VisitReader, VisitStoreError};
use visits::{
    DAY, Day, Flags, Language, Outcome, Slot, StoredAddress, Subject, TextHash, Thread, VisitId, VisitRow,
    tally::{Counted, Dimension, Quarter, Tally},
};

pub(crate) const START: i64 = 1_764_028_800_000_000; // 2025-11-25T00:00:00Z

/// The store. Clones share their rows.
#[derive(Clone, Default)]
pub(crate) struct MemoryStore(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rows: Vec<VisitRow>,
    rows_from: Option<Day>,
}

/// An administrator's key with these limits.
pub(crate) fn grant(limits: KeyLimits) -> Grant {
    let (id, secret) = (ApiKeyId(1), SecretNumber(1));
    Grant { id, secret, name: "a".into(), scopes: Scopes::admin(), limits }
}

pub(crate) fn link(number: i64) -> LinkId {
    LinkId::new(KeyspaceIndex::new(1).unwrap(), number.unsigned_abs())
}

/// A person's visit of the link with a number. Visits at the same time differ by their links.
pub(crate) fn row(at: i64, number: i64) -> VisitRow {
    VisitRow {
        link: Some(link(number)),
        id: VisitId::new(at, Slot::new(0).unwrap(), Thread::of(number.to_le_bytes()[0].into())),
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

pub(crate) fn bot(row: VisitRow) -> VisitRow {
    VisitRow { flags: Flags::new(row.flags.outcome(), true), ..row }
}

impl MemoryStore {
    pub(crate) fn new(rows: Vec<VisitRow>) -> Self {
        Self(Arc::new(Mutex::new(State { rows, rows_from: None })))
    }

    pub(crate) fn add(&self, row: VisitRow) {
        self.state().rows.push(row);
    }

    /// Removes rows for their age. Their counters stay.
    pub(crate) fn remove_before(&self, day: Day) {
        self.state().rows_from = Some(day);
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

#[async_trait]
impl VisitReader for MemoryStore {
    async fn run(&self, _: Lane, _: Operation<VisitStoreError>) -> Result<Done, VisitStoreError> {
        unreachable!("every read is below")
    }

    async fn days(
        &self,
        subject: Subject,
        days: Days,
        _: Columns,
    ) -> Result<Vec<DayCounters>, VisitStoreError> {
        let of_day = |(day, tally): (Day, Tally)| DayCounters {
            days: day.get()..day.get() + 1,
            counters: tally.delta(),
        };
        let mut tallies: BTreeMap<Day, Tally> = BTreeMap::new();
        for row in self.state().rows.iter().filter(|row| is_of(row, subject)) {
            let at = row.id.micros();
            if (days.first..days.end).contains(&Day::of(at)) {
                tallies.entry(Day::of(at)).or_default().add(&Counted {
                    quarter: Quarter::of(at),
                    is_bot: row.flags.is_bot(),
                    is_listed: true,
                    is_redirected: true,
                    visitor: Some(row.id.get().unsigned_abs()),
                    address: Some(7),
                    values: Dimension::ALL.map(|dimension| match dimension {
                        Dimension::Country => "DE",
                        Dimension::Outcome => row.flags.outcome().as_str(),
                        _ => "",
                    }),
                });
            }
        }
        Ok(tallies.into_iter().map(of_day).collect())
    }

    async fn spans(
        &self,
        subject: Subject,
        days: Days,
        columns: Columns,
    ) -> Result<Vec<DayCounters>, VisitStoreError> {
        self.days(subject, days, columns).await
    }

    async fn rows(&self, query: &RowQuery) -> Result<Vec<VisitRow>, VisitStoreError> {
        assert!(query.before.micros() - query.from.micros() <= 31 * DAY, "a query is of a month at most");
        Ok(self.find(query).into_iter().skip(usize::try_from(query.skip).unwrap()).take(query.most).collect())
    }

    async fn count_rows(&self, query: &RowQuery) -> Result<u64, VisitStoreError> {
        Ok(self.find(query).len() as u64)
    }

    async fn rows_from(&self) -> Result<Option<Day>, VisitStoreError> {
        Ok(self.state().rows_from)
    }
}
