//! Deletion of rows and counters. What there is to delete is in Postgres (`postgres/apart.rs`).
//!
//! ClickHouse rewrites the parts of a table that have such rows, in the background. A step asks for
//! that, and the next one waits for it. Several deletions are one step, and so are the rows that an
//! erasure has found on several days.
//!
//! A replica that is away deletes its rows when it is back.

use std::{collections::HashSet, time::Duration};

use links::DomainId;
use store::StoreError;
use tokio::time::{Instant, sleep, timeout};
use visits::{Day, Flags, VisitId};

use super::{
    ClickhouseVisits, counters,
    rows::any_of,
    schema::{self, TABLES, Table, unfinished},
};
use crate::{
    Erasure, Result, VisitStore as _,
    erased_rows::{ErasedRow, STEP},
    postgres::apart::{
        self, OpenCut,
        erasures::{self, ErasedIds, LaterVisits, OpenErasure},
    },
    sql::changes::stored_link,
};

/// Deletions in one step.
const CUTS: i64 = 100;
/// How long a step waits for the servers. The next one waits on.
const WAIT: Duration = Duration::from_secs(5);
/// How long a question may take that others wait for.
pub(super) const QUICK: Duration = Duration::from_secs(5);
/// Pause between questions whether they are done.
const PAUSE: Duration = Duration::from_millis(50);

/// A row of an erasure: its link, id, domain and flags.
type Found = (i64, i64, i32, i16);

/// How deletions and erasures take turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The deletions or the erasure that this process has asked the servers for.
    under_way: Option<UnderWay>,
    /// Whether an erasure comes first next.
    erasure_first: bool,
}

/// The deletions or the erasure that the servers carry out.
#[derive(Debug)]
enum UnderWay {
    Cuts(Vec<OpenCut>),
    Erased(ErasedIds),
}

/// Deletes the rows of some deletions, or takes a step of an erasure, in turn.
///
/// What this process has asked for is awaited before anything else, however long it takes, and is
/// not asked for again.
pub(super) async fn step(store: &ClickhouseVisits) -> Result<Option<u64>> {
    let mut turns = store.turns.lock().await;
    if !is_done(store).await? {
        return Ok(Some(0));
    }
    match turns.under_way.take() {
        Some(UnderWay::Cuts(cuts)) => {
            store.counters.with(async |client| apart::close_cuts(client, &cuts).await).await?;
        }
        Some(UnderWay::Erased(ids)) => {
            store.counters.with(async |client| erasures::rows_are_gone(client, &ids).await).await?;
        }
        None => {}
    }
    let erasure_first = turns.erasure_first;
    turns.erasure_first = !erasure_first;
    if erasure_first && erase(store, &mut turns.under_way).await?.is_some() {
        return Ok(Some(0));
    }
    let cuts = store.counters.with(async |client| apart::open_cuts(client, CUTS).await).await?;
    if cuts.is_empty() {
        return if erasure_first { Ok(None) } else { erase(store, &mut turns.under_way).await };
    }
    let condition = cuts.iter().map(of_cut).collect::<Vec<_>>().join(" OR ");
    let rows = format!("{} WHERE {condition}", Table::ByLink.of(store.database()));
    let deleted = store.servers.count(&rows).await?;
    delete(store, &condition).await?;
    counters::delete_cuts(store, &cuts).await?;
    turns.under_way = Some(UnderWay::Cuts(cuts));
    Ok(Some(deleted))
}

fn of_cut(cut: &OpenCut) -> String {
    format!("(link_id = {} AND id < {})", cut.link, cut.before.get())
}

/// Moves the visits of the oldest erasure's rows of a day. Once enough or all are moved, deletes
/// these rows, and once they are deleted, ends the erasure.
async fn erase(store: &ClickhouseVisits, under_way: &mut Option<UnderWay>) -> Result<Option<u64>> {
    let Some(open) = store.counters.with(async |client| erasures::open(client).await).await? else {
        return Ok(None);
    };
    let day = schema::next_day(&store.servers, store.database(), Day::of(open.next.micros())).await?;
    let day = day.filter(|day| open.next.max(VisitId::floor(day.start())) < open.erasure.before);
    let erased = store.counters.with(async |client| erasures::with_rows(client, STEP).await).await?;
    match day {
        Some(day) if erased.ids.len() < STEP => move_day(store, &open, day).await?,
        None if erased.ids.is_empty() => {
            // First without a lock, so that the question below is quick with one.
            store.servers.sync(&Table::ByTime.of(store.database())).await?;
            let later: LaterVisits<'_> = Box::new(|hashes| {
                Box::pin(async move {
                    let asked = later_visits(store, open.erasure.before, hashes);
                    timeout(QUICK, asked).await.unwrap_or(Err(StoreError::TimedOut.into()))
                })
            });
            store.counters.transact(async |sql| erasures::close(sql, &open, later).await).await?;
        }
        _ => {
            delete(store, &any_of("id", &erased.ids)).await?;
            *under_way = Some(UnderWay::Erased(erased));
        }
    }
    Ok(Some(0))
}

async fn move_day(store: &ClickhouseVisits, open: &OpenErasure, day: Day) -> Result<()> {
    let condition = of_erasure(store, &open.erasure).await?;
    let from = open.next.max(VisitId::floor(day.start()));
    let end = open.erasure.before.min(VisitId::floor(day.next().start()));
    let table = Table::ByTime.of(store.database());
    let query = format!(
        "SELECT link_id, id, domain, flags FROM {table} WHERE id >= {} AND id < {} AND {condition} ORDER BY id LIMIT {STEP}",
        from.get(),
        end.get()
    );
    let found = store.servers.fetch_latest::<Found>(&table, &query).await?;
    let last = found.last().filter(|_| found.len() == STEP);
    let next = last.map_or(end, |row| VisitId::from_stored(row.1 + 1));
    let row = |(link, id, domain, flags): &Found| ErasedRow {
        link: stored_link(*link),
        id: VisitId::from_stored(*id),
        domain: DomainId::from_stored((*domain).into()),
        flags: Flags::from_stored(*flags),
    };
    let rows: Vec<ErasedRow> = found.iter().map(row).collect();
    store.counters.transact(async |sql| erasures::move_on(sql, open, &rows, next).await).await
}

/// Returns which of some whole addresses, given by their stored numbers, are those of visits from
/// an id on.
async fn later_visits(store: &ClickhouseVisits, from: VisitId, hashes: Vec<i64>) -> Result<HashSet<i64>> {
    let table = Table::ByTime.of(store.database());
    let query = format!(
        "SELECT DISTINCT address FROM {table} WHERE id >= {} AND {}",
        from.get(),
        any_of("address", &hashes)
    );
    Ok(store.servers.fetch_latest::<i64>(&table, &query).await?.into_iter().collect())
}

/// SQL condition for rows whose address belongs to an erasure's network.
async fn of_erasure(store: &ClickhouseVisits, erasure: &Erasure) -> Result<String> {
    let (key, _) = store.counters.secrets().await?;
    let ranges = erasure.network.numbers(|octets| key.hash(octets).get()).into_iter();
    let mut parts: Vec<String> =
        ranges.map(|(first, last)| format!("(address >= {first} AND address <= {last})")).collect();
    let network = erasure.network;
    let texts = store.counters.with(async |client| erasures::address_texts(client, network).await).await?;
    if !texts.is_empty() {
        parts.push(any_of("address", &texts));
    }
    Ok(format!("({})", parts.join(" OR ")))
}

/// Asks the servers to delete the rows that fit a condition from all tables.
async fn delete(store: &ClickhouseVisits, condition: &str) -> Result<()> {
    for table in TABLES {
        let delete = format!("ALTER TABLE {} DELETE WHERE {condition}", table.of(store.database()));
        store.servers.run(&delete).await?;
    }
    Ok(())
}

/// Waits for a while until no deletion is at work, and returns whether that is so.
async fn is_done(store: &ClickhouseVisits) -> Result<bool> {
    let (unfinished, until) = (unfinished(store.database()), Instant::now() + WAIT);
    loop {
        if store.servers.count(&unfinished).await? == 0 {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
}
