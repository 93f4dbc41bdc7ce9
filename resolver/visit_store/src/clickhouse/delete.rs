//! Deletion of rows. What there is to delete is in Postgres (`postgres/apart.rs`).
//!
//! ClickHouse rewrites the parts of a table that have such rows, in the background. A step begins
//! that and waits for it, so several deletions are one step.

use std::time::Duration;

use clickhouse::Row;
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use visits::{Day, TextKey, VisitId};

use super::{
    ClickhouseVisits,
    rows::any_of,
    schema::{TABLES, Table, unfinished},
};
use crate::{
    DeletionStep, Erasure, VisitStoreError,
    erased_rows::STEP,
    postgres::{OpenCut, OpenErasure, erased_row},
};

/// Deletions in one step.
const CUTS: i64 = 100;
/// How long a step waits for the servers. The next one waits on.
const WAIT: Duration = Duration::from_secs(30);
/// Pause between questions whether they are done.
const PAUSE: Duration = Duration::from_millis(50);

/// A row of an erasure.
#[derive(Row, Deserialize)]
struct Found {
    link_id: i64,
    id: i64,
    domain: i32,
    flags: i16,
}

/// Deletes the rows of some deletions, or else takes a step of an erasure.
pub(super) async fn step(store: &ClickhouseVisits) -> Result<DeletionStep, VisitStoreError> {
    let cuts = store.counters.open_cuts(CUTS).await?;
    if cuts.is_empty() {
        return erase(store).await;
    }
    let parts: Vec<String> = cuts.iter().map(of_cut).collect();
    let deleted = delete(store, &parts.join(" OR ")).await?;
    if deleted.is_some() {
        store.counters.close_cuts(&cuts).await?;
    }
    Ok(DeletionStep { deleted: deleted.unwrap_or(0), has_more: true })
}

fn of_cut(cut: &OpenCut) -> String {
    format!("(link_id = {} AND id < {})", cut.link, cut.before.get())
}

/// Moves the visits of the oldest erasure's rows of a day, or deletes its rows once all are moved.
async fn erase(store: &ClickhouseVisits) -> Result<DeletionStep, VisitStoreError> {
    let Some((open, day)) = store.counters.open_erasure().await? else {
        return Ok(DeletionStep { deleted: 0, has_more: false });
    };
    let condition = of_erasure(store, &open.erasure).await?;
    let Some(day) = day else {
        let before = format!("id < {} AND {condition}", open.erasure.before.get());
        let deleted = delete(store, &before).await?;
        if deleted.is_some() {
            store.counters.close_erasure(&open).await?;
        }
        return Ok(DeletionStep { deleted: deleted.unwrap_or(0), has_more: true });
    };
    move_day(store, &open, day, &condition).await?;
    Ok(DeletionStep { deleted: 0, has_more: true })
}

async fn move_day(
    store: &ClickhouseVisits,
    open: &OpenErasure,
    day: Day,
    condition: &str,
) -> Result<(), VisitStoreError> {
    let from = open.next.max(VisitId::floor(day.start()));
    let end = open.erasure.before.min(VisitId::floor(day.next().start()));
    let query = format!(
        "SELECT link_id, id, domain, flags FROM {} WHERE id >= {} AND id < {} AND {condition} ORDER BY id LIMIT {STEP}",
        Table::ByTime.of(store.database()),
        from.get(),
        end.get()
    );
    let found = store.servers.fetch::<Found>(&query).await?;
    let last = found.last().filter(|_| found.len() == STEP);
    let next = last.map_or(end, |row| VisitId::from_stored(row.id + 1));
    let rows: Vec<_> =
        found.iter().map(|row| erased_row(row.link_id, row.id, row.domain.into(), row.flags)).collect();
    store.counters.move_on(open, &rows, day, next).await
}

/// SQL condition for rows whose address belongs to an erasure's network.
async fn of_erasure(store: &ClickhouseVisits, erasure: &Erasure) -> Result<String, VisitStoreError> {
    let key: TextKey = store.text_key().await?;
    let ranges = erasure.network.numbers(|octets| key.hash(octets).get()).into_iter();
    let mut parts: Vec<String> =
        ranges.map(|(first, last)| format!("(address >= {first} AND address <= {last})")).collect();
    let texts = store.counters.address_texts(erasure.network).await?;
    if !texts.is_empty() {
        parts.push(any_of("address", &texts));
    }
    Ok(format!("({})", parts.join(" OR ")))
}

/// Deletes the rows that fit a condition from all tables, and returns how many there were; `None` if
/// the servers are still at it, or at an earlier deletion.
async fn delete(store: &ClickhouseVisits, condition: &str) -> Result<Option<u64>, VisitStoreError> {
    let until = Instant::now() + WAIT;
    if !is_done(store, until).await? {
        return Ok(None);
    }
    let count = format!("SELECT count() FROM {} WHERE {condition}", Table::ByTime.of(store.database()));
    let count = store.servers.fetch::<u64>(&count).await?.first().copied().unwrap_or(0);
    for table in TABLES {
        store
            .servers
            .run(&format!("ALTER TABLE {} DELETE WHERE {condition}", table.of(store.database())))
            .await?;
    }
    Ok(is_done(store, until).await?.then_some(count))
}

/// Waits until no deletion is at work, and returns whether that is so.
async fn is_done(store: &ClickhouseVisits, until: Instant) -> Result<bool, VisitStoreError> {
    let unfinished = unfinished(store.database());
    loop {
        let at_work = store.servers.fetch::<u64>(&unfinished).await?;
        if at_work.first().is_none_or(|count| *count == 0) {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
}
