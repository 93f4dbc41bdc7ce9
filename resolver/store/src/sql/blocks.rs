//! The block register: which holder may use which ids.
//!
//! I1: no two rows overlap. Postgres' exclusion constraint refuses a row that overlaps another,
//! also one whose commit is under way: the insert waits for it. SQLite has one writer, so the
//! condition of the insert suffices.

use codes::{KeyspaceIndex, LinkId};
use numbers::Span;

use super::{
    Dialect, ROWS_AT_ONCE, Sql, Value,
    keyspaces::{ids_of, number_of_end},
};
use crate::{BlockEntry, Registration, Result, StoreError};

pub(crate) const LINKS_PAGE: usize = 10_000;

/// Maximum number of a predecessor's commits that one take-over waits for. Each start of a holder
/// leaves at most one under way.
const TAKE_OVER_TRIES: usize = 5;

/// SQL condition on a row of `block`: it belongs to an open reservation. The reservation's codes
/// are published, so no other block ever takes the row over, whatever its generation in the ledger.
///
/// The first equation finds the reservation by its key (the prefix has twelve characters), and the
/// last one decides. `OFFSET 0` keeps the query from becoming a join, whose plan can begin with all
/// reservations (seen: a second for 100 slugs); SQLite wants a `LIMIT` before it.
const IS_RESERVED: &str = "EXISTS (SELECT 1 FROM reservation
    WHERE id = substr(block.holder, 13) AND closed_at IS NULL AND 'reservation-' || id = block.holder
    LIMIT 1 OFFSET 0)";

/// If the block is refused because an earlier attempt of this call was committed, that attempt's
/// row is found.
pub(crate) async fn register_block(sql: &mut dyn Sql, block: &BlockEntry) -> Result<Registration> {
    let is_registered = enter(sql, block, &[block.span]).await? || is_registered(sql, block).await?;
    Ok(if is_registered { Registration::Registered } else { Registration::Overlaps })
}

/// Replaces all rows in the block's range that are not newer than the leaked generation by one new
/// row. A row may be older than that: a holder that died between allocation and take-over left the
/// row of its predecessor. A newer row belongs to a holder that has taken the block over since, and
/// refuses this one. So does the row of an open reservation, which a ledger from a backup may have
/// forgotten. The delete locks the rows, so of two concurrent take-overs one sees the other's row.
/// If one of these is in the way, [`StoreError::Overlap`] rolls the transaction back, so that rows
/// which were to be replaced stay.
pub(crate) async fn take_over_block(sql: &mut dyn Sql, block: &BlockEntry, leaked: u64) -> Result<()> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let older = format!(
        "DELETE FROM block WHERE generation <= $1 AND {} AND NOT {IS_RESERVED}",
        sql.dialect().block_within("$2", "$3")
    );
    for _ in 0..TAKE_OVER_TRIES {
        sql.query(&older, &[signed(leaked)?, Value::Int(first), Value::Int(end)]).await?;
        if enter(sql, block, &[block.span]).await? || is_registered(sql, block).await? {
            return Ok(());
        }
        if has_newer(sql, block, leaked).await? {
            return Err(StoreError::Overlap);
        }
        // A predecessor's commit was under way: the delete did not see its row, and the insert
        // waited for it.
    }
    Err(StoreError::TimedOut)
}

/// Returns whether some of the numbers were taken over by another holder, belong to a block that
/// reaches beyond this one, or are reserved.
async fn has_newer(sql: &mut dyn Sql, block: &BlockEntry, leaked: u64) -> Result<bool> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let newer = format!(
        "SELECT generation FROM block WHERE {}
         AND (generation > $3 OR NOT ({}) OR {IS_RESERVED}) LIMIT 1",
        sql.dialect().block_overlaps("$1", "$2"),
        sql.dialect().block_within("$1", "$2"),
    );
    Ok(!sql.query(&newer, &[Value::Int(first), Value::Int(end), signed(leaked)?]).await?.is_empty())
}

/// Replaces the block's rows by rows for the spans that are kept. Returns [`StoreError::Overlap`]
/// if spans are to be kept and the block has no row, because another holder has taken it over, or
/// if a kept span overlaps another block.
pub(crate) async fn release_block(sql: &mut dyn Sql, block: &BlockEntry, kept: &[Span]) -> Result<()> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let own = format!(
        "DELETE FROM block WHERE generation = $1 AND instance = $2 AND {} RETURNING generation",
        sql.dialect().block_within("$3", "$4")
    );
    let values = [signed(block.generation)?, Value::Text(block.instance.clone()), first.into(), end.into()];
    let is_gone = sql.query(&own, &values).await?.is_empty();
    if !kept.is_empty() && (is_gone || !enter(sql, block, kept).await?) {
        return Err(StoreError::Overlap);
    }
    Ok(())
}

/// Inserts a row for each of some spans with the block's other values. Returns whether all of them
/// were inserted: a span that overlaps a row is left out.
pub(super) async fn enter(sql: &mut dyn Sql, block: &BlockEntry, spans: &[Span]) -> Result<bool> {
    let dialect = sql.dialect();
    let mut values = vec![
        signed(block.generation)?,
        Value::Text(block.holder.clone()),
        signed(block.incarnation)?,
        Value::Text(block.instance.clone()),
    ];
    let (mut entered, (ids, range)) = (0, dialect.block_ids());
    for spans in spans.chunks(ROWS_AT_ONCE) {
        let rows: Vec<String> =
            (0..spans.len()).map(|row| format!("(${}, ${})", 2 * row + 5, 2 * row + 6)).collect();
        let insert = format!(
            "INSERT INTO block ({ids}, generation, holder, incarnation, instance)
             SELECT {range}, $1, $2, $3, $4 FROM (VALUES {}) AS span
             WHERE NOT EXISTS (SELECT 1 FROM block WHERE {})
             ON CONFLICT DO NOTHING RETURNING generation",
            rows.join(", "),
            dialect.block_overlaps("column1", "column2"),
        );
        values.truncate(4);
        for span in spans {
            let (first, end) = LinkId::range(block.keyspace, *span);
            values.extend([first.into(), end.into()]);
        }
        entered += sql.query(&insert, &values).await?.len();
    }
    Ok(entered == spans.len())
}

/// Returns whether the register has exactly this block.
async fn is_registered(sql: &mut dyn Sql, block: &BlockEntry) -> Result<bool> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let (low, high) = sql.dialect().block_bounds();
    let select = format!(
        "SELECT generation FROM block WHERE generation = $1 AND instance = $2 AND {low} = $3 AND {high} = $4"
    );
    let values = [signed(block.generation)?, Value::Text(block.instance.clone()), first.into(), end.into()];
    Ok(!sql.query(&select, &values).await?.is_empty())
}

pub(crate) async fn holds(sql: &mut dyn Sql, id: LinkId, generation: u64, instance: &str) -> Result<bool> {
    let select = format!(
        "SELECT generation FROM block WHERE {} AND generation = $3 AND instance = $4",
        sql.dialect().block_overlaps("$1", "$2")
    );
    let (id, past) = (id.get(), id.get() + 1);
    let values = [id.into(), past.into(), signed(generation)?, Value::Text(instance.to_owned())];
    Ok(!sql.query(&select, &values).await?.is_empty())
}

/// Returns the next page of the ids of links from `next` to `end`, ascending.
pub(crate) async fn page_of_links(sql: &mut dyn Sql, next: i64, end: i64) -> Result<Vec<i64>> {
    let page = format!("SELECT id FROM link WHERE id >= $1 AND id < $2 ORDER BY id LIMIT {LINKS_PAGE}");
    sql.query(&page, &[next.into(), end.into()]).await?.iter().map(|row| row.int(0)).collect()
}

/// Returns whether an open reservation owns the id. Its holder knows the code, and may have printed
/// it.
pub(crate) async fn is_reserved(sql: &mut dyn Sql, id: LinkId) -> Result<bool> {
    let select = reservation_of(sql.dialect(), "$1", "$2");
    Ok(!sql.query(&select, &[id.get().into(), (id.get() + 1).into()]).await?.is_empty())
}

/// The query for the open reservation that owns ids from the first to the end, exclusive.
pub(crate) fn reservation_of(dialect: Dialect, first: &str, end: &str) -> String {
    format!("SELECT generation FROM block WHERE {} AND {IS_RESERVED}", dialect.block_overlaps(first, end))
}

/// Blocks do not overlap, so the last one has the highest end.
pub(crate) async fn registered_end(sql: &mut dyn Sql, keyspace: KeyspaceIndex) -> Result<u64> {
    let (first, end) = ids_of(keyspace);
    let end = sql.number(sql.dialect().last_block_end(), &[first.into(), end.into()]).await?;
    Ok(number_of_end(keyspace, end))
}

/// Converts to `bigint`. Generations and incarnations count by ones and stay far below the limit.
fn signed(value: u64) -> Result<Value> {
    let value = i64::try_from(value);
    value.map(Value::Int).map_err(|error| StoreError::Corrupt(format!("table block: {error}")))
}
