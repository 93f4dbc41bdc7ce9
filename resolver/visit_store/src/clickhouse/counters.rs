//! Counters of past days, which transfers bring from Postgres (`postgres/transfers.rs`).
//!
//! 1. A row is named by its subject, its day and its transfer. It may be there more than once,
//!    until the servers merge its copies, and counts once.
//! 2. Rows of transfers that are not noted in Postgres do not count, nor those before a deletion.
//!    Whatever brings them, and whenever, they may stay.
//! 3. Days that are not kept any more do not count, and go later (`sql/old_counters.rs`).
//! 4. A subject and day may have rows of several transfers: of visits that came late, or were taken
//!    away. They add up.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use clickhouse::Row;
use codes::LinkId;
use links::DomainId;
use serde::{Deserialize, Serialize};
use store::{Sql, StoreError, VisitTotals};
use tokio::time::timeout;
use visits::{Day, Subject, SubjectKey, tally::Counters};

use super::{
    ClickhouseVisits,
    delete::QUICK,
    rows::any_of,
    schema::{self, COUNTERS},
    servers::Servers,
};
use crate::{
    Columns, DayCounters, Days, Remaining, Result, VisitStore as _,
    postgres::{
        apart::OpenCut,
        transfers::{self, CHANGED, LeavingDay, Next, Noted, Transfer},
    },
    sql::{
        closing::OPEN,
        counters, today,
        transferred::{LinkDays, Transferred},
    },
};

/// A row of the table.
#[derive(Row, Serialize, Deserialize)]
struct StoredDay {
    kind: i16,
    subject: i64,
    part: i64,
    day: i32,
    era: i64,
    transfer: i64,
    total: i64,
    bots: i64,
    #[serde(with = "serde_bytes")]
    quarters: Vec<u8>,
    #[serde(with = "serde_bytes")]
    dimensions: Vec<u8>,
    #[serde(with = "serde_bytes")]
    visitors: Vec<u8>,
    #[serde(with = "serde_bytes")]
    addresses: Vec<u8>,
}

impl StoredDay {
    fn of(LeavingDay { subject, day, counters }: LeavingDay, transfer: Transfer) -> Self {
        let SubjectKey { kind, subject, part } = subject;
        let Counters { total, bots, quarters, dimensions, visitors, addresses } = counters;
        let (day, Transfer { era, number: transfer }) = (day.get(), transfer);
        Self {
            kind,
            subject,
            part,
            day,
            era,
            transfer,
            total,
            bots,
            quarters,
            dimensions,
            visitors,
            addresses,
        }
    }

    fn counters(self) -> Counters {
        let Self { total, bots, quarters, dimensions, visitors, addresses, .. } = self;
        Counters { total, bots, quarters, dimensions, visitors, addresses }
    }
}

/// Which transfers of a subject count.
#[derive(Clone, Debug)]
struct Counting {
    noted: Noted,
    /// Those up to this one are deleted.
    after: i64,
}

impl Counting {
    async fn of(sql: &mut dyn Sql, subject: Subject) -> Result<Self> {
        let cut = match subject {
            Subject::Link(link) => Some(link.get()),
            Subject::Orphans(..) => Some(0),
            Subject::All(_) | Subject::Tag(..) => None,
        };
        let cuts = match cut {
            Some(link) => transfers::cuts(sql, &[link]).await?,
            None => Vec::new(),
        };
        let after = cuts.first().map_or(0, |(_, transfer)| *transfer);
        Ok(Self { noted: transfers::noted(sql).await?, after })
    }

    /// Returns `None` if nothing of these days can be there.
    fn if_needed(self, range: Days, today: Day) -> Option<Self> {
        Some(self).filter(|counting| may_be_there(&counting.noted, range, today))
    }
}

/// Returns whether some of these days may be there. Later ones are not transferred. While a clock
/// is set back across midnight, a day may be missing.
fn may_be_there(noted: &Noted, range: Days, today: Day) -> bool {
    !noted.eras.is_empty() && range.first <= today.minus(OPEN)
}

/// SQL condition for the transfers and the days that count.
fn noted_condition(Noted { eras, days_from }: &Noted) -> String {
    let era = |(era, until): &(i64, i64)| format!("(era = {era} AND transfer <= {until})");
    let eras: Vec<String> = eras.iter().map(era).collect();
    if eras.is_empty() {
        return "0".to_owned();
    }
    format!("day >= {days_from} AND ({})", eras.join(" OR "))
}

/// Reads the counters of a subject here and there, as
/// [`VisitReader::days`](crate::VisitReader::days) says.
pub(super) async fn days(
    store: &ClickhouseVisits,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>> {
    let (counting, here) = store
        .counters
        .snapshot(async |sql| {
            let counting = Counting::of(sql, subject).await?;
            let counting = counting.if_needed(range, today(sql).await?);
            Ok((counting, counters::days(sql, subject, range, columns).await?))
        })
        .await?;
    let Some(counting) = counting else { return Ok(here) };
    let there = selected(store.database(), subject, range, &counting, columns);
    let there = store.servers.fetch::<StoredDay>(&there).await?;
    Ok(joined(there.into_iter().map(|row| (row.day, row.counters())), here))
}

/// Adds counters by day to others, both in the order of days.
fn joined(there: impl Iterator<Item = (i32, Counters)>, here: Vec<DayCounters>) -> Vec<DayCounters> {
    let mut all: Vec<DayCounters> = Vec::new();
    let mut here = here.into_iter().peekable();
    let mut add = |next: DayCounters| match all.last_mut().filter(|last| last.days == next.days) {
        Some(last) => last.counters.append(&next.counters),
        None => all.push(next),
    };
    for (day, counters) in there {
        while let Some(earlier) = here.next_if(|one| one.days.start < day) {
            add(earlier);
        }
        add(DayCounters { days: day..day + 1, counters });
    }
    here.for_each(add);
    all
}

/// SQL for the counters of a subject that count, in the order of days.
fn selected(
    database: &str,
    subject: Subject,
    Days { first, end }: Days,
    Counting { noted, after }: &Counting,
    columns: Columns,
) -> String {
    let SubjectKey { kind, subject: number, part } = subject.key();
    let of_part = match subject {
        // It has a part for each domain that it was visited on.
        Subject::Link(_) => String::new(),
        _ => format!(" AND part = {part}"),
    };
    let column = |name: &'static str, is_wanted: bool| if is_wanted { name } else { "''" };
    format!(
        "SELECT kind, subject, part, day, era, transfer, total, bots, {}, {}, {}, {} FROM {}
         WHERE kind = {kind} AND subject = {number}{of_part} AND day >= {} AND day < {}
           AND transfer > {after} AND {}
         ORDER BY day, part, era, transfer LIMIT 1 BY day, part, era, transfer",
        column("quarters", columns.quarters),
        column("dimensions", columns.dimensions),
        column("visitors", columns.visitors),
        column("addresses", columns.addresses),
        table(database),
        first.get(),
        end.get(),
        noted_condition(noted),
    )
}

/// SQL for an array of numbers as a constant: `transform` of release 18 takes nothing else.
fn array_of(numbers: &[i64]) -> String {
    let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", list.join(","))
}

fn table(database: &str) -> String {
    format!("{database}.{COUNTERS}")
}

/// Reads the visits of links within days, as
/// [`VisitStore::link_totals`](crate::VisitStore::link_totals) says.
pub(super) async fn link_totals(
    store: &ClickhouseVisits,
    links: &[LinkId],
    range: Days,
) -> Result<HashMap<LinkId, VisitTotals>> {
    if links.is_empty() {
        return Ok(HashMap::new());
    }
    let numbers: Vec<i64> = links.iter().map(|link| link.get()).collect();
    let (noted, cuts, today, mut totals) = store
        .counters
        .snapshot(async |sql| {
            let (noted, cuts) = (transfers::noted(sql).await?, transfers::cuts(sql, &numbers).await?);
            Ok((noted, cuts, today(sql).await?, counters::link_totals(sql, links, range).await?))
        })
        .await?;
    if !may_be_there(&noted, range, today) {
        return Ok(totals);
    }
    let after_cuts = match cuts.is_empty() {
        true => String::new(),
        false => {
            let (links, transfers): (Vec<i64>, Vec<i64>) = cuts.into_iter().unzip();
            let [links, transfers] = [links, transfers].map(|numbers| array_of(&numbers));
            format!(" AND transfer > transform(subject, {links}, {transfers}, 0)")
        }
    };
    let there = format!(
        "SELECT subject, sum(total), sum(bots) FROM
             (SELECT subject, part, day, era, transfer, total, bots FROM {}
              WHERE kind = 0 AND {} AND day >= {} AND day < {} AND {}{after_cuts}
              LIMIT 1 BY subject, part, day, era, transfer)
         GROUP BY subject",
        table(store.database()),
        any_of("subject", &numbers),
        range.first.get(),
        range.end.get(),
        noted_condition(&noted),
    );
    for (link, total, bots) in store.servers.fetch::<(i64, i64, i64)>(&there).await? {
        let [total, bots] = [total, bots].map(|sum| u64::try_from(sum).unwrap_or(0));
        let totals = totals.entry(LinkId::from_stored(link)).or_default();
        (totals.total, totals.bots) = (totals.total + total, totals.bots + bots);
    }
    Ok(totals)
}

/// Takes a step of the next transfer.
pub(super) async fn transfer(store: &ClickhouseVisits) -> Result<Remaining> {
    // ClickHouse may have been away at the start.
    store.has_tables.get_or_try_init(async || schema::migrate(&store.servers, &store.address).await).await?;
    let next = store.counters.in_turn(async |sql| transfers::next(sql).await).await?;
    let transfer = match next {
        None => return Ok(Remaining::Held),
        Some(Next::Rest(remaining)) => return Ok(remaining),
        Some(Next::Send(transfer)) => transfer,
    };
    let leaving = store.counters.transact(async |sql| transfers::leaving(sql, transfer).await).await?;
    insert(&store.servers, store.database(), leaving, transfer).await?;
    // Each replica must have the rows before Postgres removes them.
    store.servers.sync_all(&table(store.database())).await?;
    let end = store.counters.in_turn(async |sql| transfers::end(sql, transfer).await).await?;
    Ok(if end.is_some() { Remaining::Something } else { Remaining::Held })
}

/// Asks the servers to delete the counters of cuts, unless they have none.
pub(super) async fn delete_cuts(store: &ClickhouseVisits, cuts: &[OpenCut]) -> Result<()> {
    let of_cut = |OpenCut { link, transferred, .. }: &OpenCut| {
        let subject = match link {
            0 => format!("kind = {}", Subject::Orphans(None, None).key().kind),
            _ => format!("kind = 0 AND subject = {link}"),
        };
        format!("({subject} AND transfer <= {transferred})")
    };
    let condition = cuts.iter().map(of_cut).collect::<Vec<_>>().join(" OR ");
    store.delete_counters(&condition).await
}

async fn insert(
    servers: &Servers,
    database: &str,
    leaving: Vec<LeavingDay>,
    transfer: Transfer,
) -> Result<()> {
    let rows: Vec<StoredDay> = leaving.into_iter().map(|day| StoredDay::of(day, transfer)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let rows = &rows;
    servers
        .call(|client| async move {
            let mut insert = client.with_database(database).insert::<StoredDay>(COUNTERS).await?;
            for row in rows {
                insert.write(row).await?;
            }
            insert.end().await
        })
        .await
}

impl ClickhouseVisits {
    /// Lets a replica fetch what others have. So a later read under a lock is short.
    pub(super) async fn fetch_counters(&self) -> Result<()> {
        self.ping_rows().await?;
        self.servers.sync(&table(self.database())).await
    }

    /// Asks the servers to delete counters, unless there are none.
    async fn delete_counters(&self, condition: &str) -> Result<()> {
        let table = table(self.database());
        let count = format!("SELECT count() FROM {table} WHERE {condition}");
        if self.servers.fetch_latest::<u64>(&table, &count).await?.iter().any(|rows| *rows > 0) {
            self.servers.run(&format!("ALTER TABLE {table} DELETE WHERE {condition}")).await?;
        }
        Ok(())
    }

    /// Reads rows for a change: a replica first fetches what others have.
    async fn read_latest<T>(&self, query: &str) -> Result<Vec<T>>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead + Send,
    {
        let table = table(self.database());
        timeout(QUICK, self.servers.fetch_latest::<T>(&table, query))
            .await
            .unwrap_or(Err(StoreError::TimedOut.into()))
    }
}

#[async_trait]
impl Transferred for ClickhouseVisits {
    fn slot_of_changes(&self) -> i16 {
        CHANGED
    }

    async fn links_with_days(&self, links: &[LinkId]) -> Result<HashSet<LinkId>> {
        let numbers: Vec<i64> = links.iter().map(|link| link.get()).collect();
        let there = format!(
            "SELECT DISTINCT subject FROM {} WHERE kind = 0 AND {}",
            table(self.database()),
            any_of("subject", &numbers)
        );
        Ok(self.read_latest::<i64>(&there).await?.into_iter().map(LinkId::from_stored).collect())
    }

    async fn days_of_link(&self, sql: &mut dyn Sql, link: LinkId) -> Result<LinkDays> {
        let subject = Subject::Link(link);
        let counting = Counting::of(sql, subject).await?;
        let days = selected(self.database(), subject, Days::ALWAYS, &counting, Columns::ALL);
        let day = |row: StoredDay| {
            let (day, domain) = (Day::from_stored(row.day), DomainId::from_stored(row.part - 1));
            (day, domain, row.counters())
        };
        Ok(self.read_latest::<StoredDay>(&days).await?.into_iter().map(day).collect())
    }

    async fn orphan_total(&self, sql: &mut dyn Sql) -> Result<i64> {
        let subject = Subject::Orphans(None, None);
        let counting = Counting::of(sql, subject).await?;
        let days = selected(self.database(), subject, Days::ALWAYS, &counting, Columns::default());
        Ok(self.read_latest::<StoredDay>(&days).await?.iter().map(|day| day.total).sum())
    }

    async fn cut(&self, sql: &mut dyn Sql, link: i64) -> Result<()> {
        // Rows before the cut do not count. They are deleted with those of visits (`delete.rs`).
        transfers::note_cut(sql, link).await
    }

    async fn forget_tag(&self, tag: i64) -> Result<()> {
        let SubjectKey { kind, subject, .. } = Subject::Tag(tag, None).key();
        let of_tag = format!("kind = {kind} AND subject = {subject}");
        timeout(QUICK, self.delete_counters(&of_tag)).await.unwrap_or(Err(StoreError::TimedOut.into()))
    }
}
