//! Visits of the cases, and short ways to store and to read them.

use std::collections::{BTreeMap, HashMap};

use codes::LinkId;
use jiff::Timestamp;
use links::DomainId;
use visit_store::{
    Batch, Columns, DayCounters, DayDelta, Days, LinkVisits, Producer, RowQuery, RowsRecord, SpoolId,
    VisitStore, WriteError,
};
use visits::{
    DAY, Day, Flags, Language, Outcome, StoredAddress, Subject, SubjectKey, TextHash, Thread, VisitId,
    VisitRow,
    tally::{Counted, Counters, Dimension, Quarter, Tally},
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// The link; 0 for an orphan visit.
    pub(crate) link: i64,
    /// When it was, in microseconds since 1970. No two visits of a producer have the same time.
    pub(crate) at: i64,
    pub(crate) domain: i64,
    pub(crate) outcome: Outcome,
    pub(crate) is_bot: bool,
    /// A number of the visitor, and of the page that the visitor comes from.
    pub(crate) visitor: u64,
    /// A tag whose counters include the link.
    pub(crate) tag: Option<i64>,
}

impl Visit {
    /// A redirect of a person.
    pub(crate) fn of(link: i64, at: i64) -> Self {
        Self { link, at, domain: 0, outcome: Outcome::Redirected, is_bot: false, visitor: 1, tag: None }
    }

    /// The row of the visit, stored by a producer.
    pub(crate) fn row(&self, producer: &Producer) -> VisitRow {
        VisitRow {
            link: (self.link != 0).then(|| LinkId::from_stored(self.link)),
            id: VisitId::new(self.at, producer.slot, Thread::of(63)),
            visitor: i32::MIN + i32::try_from(self.visitor).unwrap(),
            user_agent: TextHash::from_stored(i64::MIN),
            referrer: TextHash::from_stored(i64::MAX),
            urls: TextHash::EMPTY,
            place: TextHash::OTHER,
            address: StoredAddress::from_stored(i64::MAX - 7),
            domain: DomainId::from_stored(self.domain),
            language: Language::from_stored(3_000_000),
            flags: Flags::new(self.outcome, self.is_bot),
            rule: 255,
        }
    }

    fn subjects(&self) -> Vec<SubjectKey> {
        let domain = DomainId::from_stored(self.domain);
        match self.outcome.orphan() {
            None => {
                let mut subjects = vec![SubjectKey::of_link(LinkId::from_stored(self.link), domain)];
                subjects.extend([Subject::All(None), Subject::All(Some(domain))].map(Subject::key));
                if let Some(tag) = self.tag {
                    let tags = [Subject::Tag(tag, None), Subject::Tag(tag, Some(domain))];
                    subjects.extend(tags.map(Subject::key));
                }
                subjects
            }
            Some(kind) => [None, Some(domain)]
                .into_iter()
                .flat_map(|domain| [Subject::Orphans(None, domain), Subject::Orphans(Some(kind), domain)])
                .map(Subject::key)
                .collect(),
        }
    }

    fn count(&self, tally: &mut Tally) {
        let referrer = format!("https://visitor-{:08}.example.com/", self.visitor);
        tally.add(&Counted {
            quarter: Quarter::of(self.at),
            is_bot: self.is_bot,
            is_listed: true,
            is_redirected: true,
            visitor: Some(self.visitor),
            address: Some(self.visitor / 2),
            values: Dimension::ALL.map(|dimension| match dimension {
                Dimension::Referrer => referrer.as_str(),
                Dimension::Outcome => self.outcome.as_str(),
                _ => "",
            }),
        });
    }
}

/// Returns a batch of one block, which begins at the producer's position.
pub(crate) fn batch(producer: &Producer, visits: &[Visit]) -> Batch {
    let mut rows: Vec<VisitRow> = visits.iter().map(|visit| visit.row(producer)).collect();
    rows.sort_by_key(|row| (row.link, row.id));
    let mut days: BTreeMap<(SubjectKey, Day), Tally> = BTreeMap::new();
    let mut links: BTreeMap<i64, LinkVisits> = BTreeMap::new();
    for visit in visits {
        for subject in visit.subjects() {
            visit.count(days.entry((subject, Day::of(visit.at))).or_default());
        }
        if visit.outcome.orphan().is_none() {
            let link = LinkId::from_stored(visit.link);
            let none = LinkVisits { link, total: 0, bots: 0, last: 0, imported: 0 };
            let sum = links.entry(visit.link).or_insert(none);
            sum.total += 1;
            sum.bots += i64::from(visit.is_bot);
            sum.last = sum.last.max(visit.at);
        }
    }
    let day =
        |((subject, day), tally): ((SubjectKey, Day), Tally)| DayDelta { subject, day, delta: tally.delta() };
    Batch {
        from: producer.position,
        to: producer.position + 1,
        rows,
        texts: Vec::new(),
        addresses: Vec::new(),
        days: days.into_iter().map(day).collect(),
        links: links.into_values().collect(),
        tags: HashMap::new(),
        events: Vec::new(),
    }
}

pub(crate) async fn register(store: &dyn VisitStore, spool: u128) -> Producer {
    store.register(SpoolId(spool), "a test").await.unwrap()
}

/// Stores a batch with its rows, as a writer does.
pub(crate) async fn store_batch(
    store: &dyn VisitStore,
    producer: &Producer,
    batch: &Batch,
    known: i64,
) -> Result<(), WriteError> {
    store.store(producer, batch, known).await?;
    store.store_rows(&RowsRecord::of(batch, known)).await.map_err(WriteError::Unknown)
}

/// Stores visits as one batch that knows all changes.
pub(crate) async fn store_all(store: &dyn VisitStore, producer: &mut Producer, visits: &[Visit]) {
    let known = store.changes(0).await.unwrap().version;
    store_batch(store, producer, &batch(producer, visits), known).await.unwrap();
    producer.position += 1;
}

/// The current day. A case that runs over midnight sees no difference.
pub(crate) fn today() -> Day {
    Day::of(Timestamp::now().as_microsecond())
}

/// Noon of the day a number of days ago.
pub(crate) fn noon(days_ago: i32) -> i64 {
    today().minus(days_ago).start() + DAY / 2
}

/// All days that visits can be of.
pub(crate) fn always() -> Days {
    Days { first: Day::from_stored(0), end: Day::from_stored(50_000) }
}

/// Returns all visits of a subject and those of bots, by its counters.
pub(crate) async fn totals(store: &dyn VisitStore, subject: Subject) -> (i64, i64) {
    let days = store.days(subject, always(), Columns::default()).await.unwrap();
    days.iter().fold((0, 0), |(total, bots), day| (total + day.counters.total, bots + day.counters.bots))
}

pub(crate) fn tally(counters: &[DayCounters]) -> Tally {
    let mut all = Counters::default();
    counters.iter().for_each(|day| all.append(&day.counters));
    Tally::from_chunks(&all).unwrap()
}

pub(crate) fn all_rows(subject: Subject) -> RowQuery {
    RowQuery {
        subject,
        people_only: false,
        from: VisitId::floor(0),
        before: VisitId::MAX,
        skip: 0,
        most: 1_000_000,
    }
}
