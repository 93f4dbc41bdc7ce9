//! Rows: how they are stored, found and read.

use std::collections::{BTreeMap, HashSet};

use clickhouse::{
    Row,
    native::{Block, builder::BlockBuilder},
};
use codes::LinkId;
use serde::Deserialize;
use visits::{BOT, Day, Slot, Subject, VisitId, VisitRow};

use super::{
    schema::{TABLES, Table},
    servers::Servers,
};
use crate::{
    Result, RowQuery, RowsRecord, VisitStoreError,
    sql::rows::{of_kind, on},
};

/// The columns of the tables, in the order of [`StoredRow`].
const COLUMNS: &str = VisitRow::COLUMNS;
/// Up to this many links of a tag, their rows are found link by link.
const FEW_LINKS: usize = 1_000;

/// A row as the tables have it.
#[derive(Row, Deserialize)]
struct StoredRow {
    link_id: i64,
    id: i64,
    user_agent: i64,
    referrer: i64,
    urls: i64,
    place: i64,
    address: i64,
    visitor: i32,
    domain: i32,
    language: i32,
    flags: i16,
    rule: i16,
}

/// Returns rows of a table, told by what stands after FROM.
pub(super) async fn fetch(servers: &Servers, rows: &str) -> Result<Vec<VisitRow>> {
    let found = servers.fetch::<StoredRow>(&format!("SELECT {COLUMNS} FROM {rows}")).await?;
    let row = |row: StoredRow| {
        let StoredRow { link_id, id, user_agent, referrer, urls, place, address, .. } = row;
        let [visitor, domain, language] = [row.visitor, row.domain, row.language].map(i64::from);
        let [flags, rule] = [row.flags, row.rule].map(i64::from);
        VisitRow::from_numbers([
            link_id, id, user_agent, referrer, urls, place, address, visitor, domain, language, flags, rule,
        ])
    };
    Ok(found.into_iter().map(|one| row(one).expect("a column is as wide as its number")).collect())
}

/// Stores the rows of a record, those that are there already excepted.
///
/// 1. The rows of a day are one block in format Native, which tells their number first. So a block
///    is stored entirely or not at all, also if its connection breaks off.
/// 2. A block that may be on its way still, after a call without an answer, is sent again with the
///    same bytes: the servers store it once.
/// 3. They forget blocks after a week or 10,000 others, and 18.16 without a cluster remembers none.
///    So they are asked which rows they have, unless no process can have sent any. A replica that
///    lacks rows which it has forgotten as well would take them twice: it would have to be behind
///    for as long.
pub(super) async fn store(servers: &Servers, database: &str, record: &RowsRecord) -> Result<()> {
    let mut days: BTreeMap<Day, Vec<VisitRow>> = BTreeMap::new();
    for row in &record.rows {
        days.entry(Day::of(row.id.micros())).or_default().push(*row);
    }
    for rows in days.values() {
        for table in TABLES {
            let mut missing = match record.may_be_stored {
                true => missing(servers, database, table, rows).await?,
                false => rows.clone(),
            };
            if table == Table::ByTime {
                missing.sort_unstable_by_key(|row| row.id);
            }
            insert(servers, database, table, &missing).await?;
        }
    }
    Ok(())
}

/// Returns the rows that a table does not have. They come from one slot, so that no more ids are
/// read than this one has stored within the same time.
async fn missing(
    servers: &Servers,
    database: &str,
    table: Table,
    rows: &[VisitRow],
) -> Result<Vec<VisitRow>> {
    let ids = || rows.iter().map(|row| row.id.get());
    let (first, last) = (ids().min().unwrap_or(0), ids().max().unwrap_or(0));
    let links = || rows.iter().map(|row| row.link.map_or(0, LinkId::get));
    let of_links = match table {
        Table::ByLink => format!(
            "link_id >= {} AND link_id <= {} AND ",
            links().min().unwrap_or(0),
            links().max().unwrap_or(0)
        ),
        Table::ByTime => String::new(),
    };
    let query = format!(
        "SELECT id FROM {} WHERE {of_links}id >= {first} AND id <= {last} AND bitAnd(bitShiftRight(id, {}), {}) = {}",
        table.of(database),
        VisitId::BELOW_SLOT,
        Slot::COUNT - 1,
        VisitId::from_stored(first).slot().get()
    );
    let there: HashSet<i64> = servers.fetch::<i64>(&query).await?.into_iter().collect();
    Ok(rows.iter().filter(|row| !there.contains(&row.id.get())).copied().collect())
}

async fn insert(servers: &Servers, database: &str, table: Table, rows: &[VisitRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let block = &block(rows).map_err(VisitStoreError::Engine)?;
    servers
        .call(|client| async move {
            let mut insert = client.with_database(database).insert_native(table.name());
            insert.write(block).await?;
            insert.end().await
        })
        .await
}

fn block(rows: &[VisitRow]) -> Result<Block, Box<dyn std::error::Error + Send + Sync>> {
    let mut block = BlockBuilder::new();
    for (column, name) in COLUMNS.split(", ").enumerate() {
        let numbers = rows.iter().map(|row| row.numbers()[column]);
        // Domains are numbered from 0, and there are at most some thousands.
        match name {
            "visitor" | "domain" | "language" => {
                let numbers = numbers.map(|number| i32::try_from(number).unwrap_or(0));
                block.upsert_column::<i32>(name)?.add_all(numbers)?;
            }
            "flags" | "rule" => {
                let numbers = numbers.map(|number| i16::try_from(number).unwrap_or(0));
                block.upsert_column::<i16>(name)?.add_all(numbers)?;
            }
            _ => {
                block.upsert_column::<i64>(name)?.add_all(numbers)?;
            }
        }
    }
    Ok(block.build()?)
}

/// SQL for the rows of a query: a table, and a condition. `links` are those of its tag.
pub(super) fn selected(database: &str, query: &RowQuery, links: &[i64]) -> String {
    let of_kind = |kind| of_kind(kind, "bitShiftRight(flags, 1)");
    let (table, of_subject) = match query.subject {
        Subject::Link(link) => (Table::ByLink, format!("link_id = {}", link.get())),
        Subject::All(domain) => (Table::ByTime, format!("link_id != 0{}", on(domain))),
        Subject::Tag(_, domain) => {
            let table = if links.len() <= FEW_LINKS { Table::ByLink } else { Table::ByTime };
            (table, format!("{}{}", any_of("link_id", links), on(domain)))
        }
        Subject::Orphans(kind, domain) => {
            (Table::ByLink, format!("link_id = 0{}{}", kind.map_or_else(String::new, of_kind), on(domain)))
        }
    };
    let people = if query.people_only { format!(" AND bitAnd(flags, {BOT}) = 0") } else { String::new() };
    let (table, from, before) = (table.of(database), query.from.get(), query.before.get());
    format!("{table} WHERE {of_subject} AND id >= {from} AND id < {before}{people}")
}

/// SQL condition for numbers of a column. Many are one text, because the parts of a statement are
/// limited.
pub(super) fn any_of(column: &str, numbers: &[i64]) -> String {
    let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
    match numbers.len() {
        0 => "0".to_owned(),
        1..=FEW_LINKS => format!("{column} IN ({})", list.join(", ")),
        _ => format!("{column} IN (SELECT toInt64(arrayJoin(splitByChar(',', '{}'))))", list.join(",")),
    }
}
