//! The block register in Postgres.

use codes::{KeyspaceIndex, LinkId};
use numbers::Span;
use tokio_postgres::{Client, Transaction, error::SqlState};

use crate::{
    BlockEntry, Registration, StoreError,
    sql::{Gaps, SCAN_PAGE, ids_of, number_of_end},
};

/// Converts to `bigint`. Postgres has no unsigned integers; generations and incarnations count by
/// ones and stay far below the limit.
fn signed(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Corrupt(format!("{value} does not fit a bigint")))
}

/// Maximum number of a predecessor's commits that one take-over waits for. Each start of a holder
/// leaves at most one under way.
const TAKE_OVER_TRIES: usize = 5;

const INSERT: &str = "
    INSERT INTO block (ids, generation, holder, incarnation, instance)
    SELECT int8range(first, \"end\"), $3, $4, $5, $6 FROM unnest($1::bigint[], $2::bigint[]) AS kept (first, \"end\")";

/// Registers a block. The exclusion constraint decides. If it refuses because an earlier attempt of
/// this call was committed, that attempt's row is found.
pub(super) async fn register(client: &mut Client, block: &BlockEntry) -> Result<Registration, StoreError> {
    let transaction = client.transaction().await?;
    let inserted = insert(&transaction, block, &[block.span]).await;
    settle(transaction, inserted).await?;
    is_registered(client, block).await
}

/// SQL condition on a row of `block`: it belongs to an open reservation. The reservation's codes
/// are published, so no other block ever takes the row over, whatever its generation in the ledger.
const IS_RESERVED: &str = "EXISTS (SELECT 1 FROM reservation
    WHERE closed_at IS NULL AND 'reservation-' || reservation.id = block.holder)";

/// Replaces all rows in the block's range that are not newer than the leaked generation by one new
/// row.
///
/// A row may be older than that: a holder that died between allocation and take-over left the row
/// of its predecessor. A newer row belongs to a holder that has taken the block over since, and
/// makes the constraint refuse. So does the row of an open reservation, which a ledger from a
/// backup may have forgotten. The delete locks the rows, so of two concurrent take-overs one sees
/// the other's row.
///
/// # Errors
/// Returns [`StoreError::Overlap`] if a predecessor's row was in the way at each of
/// [`TAKE_OVER_TRIES`] attempts.
pub(super) async fn take_over(
    client: &mut Client,
    block: &BlockEntry,
    leaked: u64,
) -> Result<Registration, StoreError> {
    for _ in 0..TAKE_OVER_TRIES {
        let (first, end) = LinkId::range(block.keyspace, block.span);
        let transaction = client.transaction().await?;
        let older = format!(
            "DELETE FROM block WHERE generation <= $1 AND ids <@ int8range($2, $3) AND NOT {IS_RESERVED}"
        );
        transaction.execute(&older, &[&signed(leaked)?, &first, &end]).await?;
        let inserted = insert(&transaction, block, &[block.span]).await;
        settle(transaction, inserted).await?;
        if is_registered(client, block).await? == Registration::Registered {
            return Ok(Registration::Registered);
        }
        if has_newer(client, block, leaked).await? {
            return Ok(Registration::Overlaps);
        }
    }
    Err(StoreError::Overlap)
}

/// Returns whether some of the numbers were taken over by another holder, belong to a block that
/// reaches beyond this one, or are reserved.
///
/// Otherwise the conflicting row came from a predecessor whose commit was still under way: the
/// delete could not see its row, and the insert waited for it.
async fn has_newer(client: &Client, block: &BlockEntry, leaked: u64) -> Result<bool, StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let sql = format!(
        "SELECT 1 FROM block WHERE ids && int8range($1, $2)
         AND (generation > $3 OR NOT ids <@ int8range($1, $2) OR {IS_RESERVED}) LIMIT 1"
    );
    Ok(client.query_opt(&sql, &[&first, &end, &signed(leaked)?]).await?.is_some())
}

/// Replaces the block's rows by rows for the spans that are kept.
///
/// # Errors
/// Returns [`StoreError::Overlap`] if spans are to be kept and the block has no row, because
/// another holder has taken it over, or if a kept span overlaps another block.
pub(super) async fn release(
    client: &mut Client,
    block: &BlockEntry,
    kept: &[Span],
) -> Result<(), StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let transaction = client.transaction().await?;
    let deleted = transaction
        .execute(
            "DELETE FROM block WHERE generation = $1 AND instance = $2 AND ids <@ int8range($3, $4)",
            &[&signed(block.generation)?, &block.instance, &first, &end],
        )
        .await?;
    if deleted == 0 && !kept.is_empty() {
        return Err(StoreError::Overlap);
    }
    match insert(&transaction, block, kept).await {
        Ok(_) => Ok(transaction.commit().await?),
        Err(error) if is_overlap(&error) => Err(StoreError::Overlap),
        Err(error) => Err(error),
    }
}

async fn insert(
    transaction: &Transaction<'_>,
    block: &BlockEntry,
    spans: &[Span],
) -> Result<u64, StoreError> {
    let (firsts, ends): (Vec<i64>, Vec<i64>) =
        spans.iter().map(|span| LinkId::range(block.keyspace, *span)).unzip();
    let (generation, incarnation) = (signed(block.generation)?, signed(block.incarnation)?);
    let row: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&firsts, &ends, &generation, &block.holder, &incarnation, &block.instance];
    Ok(transaction.execute(INSERT, &row).await?)
}

/// Commits, or rolls back if the constraint refused the insert.
async fn settle(transaction: Transaction<'_>, inserted: Result<u64, StoreError>) -> Result<(), StoreError> {
    match inserted {
        Ok(_) => Ok(transaction.commit().await?),
        Err(error) if is_overlap(&error) => Ok(transaction.rollback().await?),
        Err(error) => Err(error),
    }
}

fn is_overlap(error: &StoreError) -> bool {
    matches!(error, StoreError::Postgres(error) if error.code() == Some(&SqlState::EXCLUSION_VIOLATION))
}

/// Returns whether the register has exactly this block, from this call or from an earlier attempt
/// of it.
async fn is_registered(client: &Client, block: &BlockEntry) -> Result<Registration, StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let sql = "SELECT 1 FROM block WHERE ids = int8range($1, $2) AND generation = $3 AND instance = $4";
    let mine = client.query_opt(sql, &[&first, &end, &signed(block.generation)?, &block.instance]).await?;
    Ok(if mine.is_some() { Registration::Registered } else { Registration::Overlaps })
}

pub(super) async fn holds(
    client: &Client,
    id: LinkId,
    generation: u64,
    instance: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM block WHERE ids @> $1::bigint AND generation = $2 AND instance = $3";
    Ok(client.query_opt(sql, &[&id.get(), &signed(generation)?, &instance]).await?.is_some())
}

/// Reads one page of stored ids into `gaps`, and returns whether it was the last page.
pub(super) async fn scan(client: &Client, gaps: &mut Gaps) -> Result<bool, StoreError> {
    let limit = i64::try_from(SCAN_PAGE).unwrap_or(i64::MAX);
    let sql = "SELECT id FROM link WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3";
    let rows = client.query(sql, &[&gaps.next, &gaps.end, &limit]).await?;
    let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    Ok(gaps.page(&ids))
}

/// Returns the end of a keyspace's registered numbers.
///
/// Ranges are ordered by their start and do not overlap, so the last one has the highest end. They
/// are compared with ranges of one id, because no range with the same start sorts below those. An
/// unbounded range would sort above the first block of the keyspace, and of the next one.
pub(super) async fn registered_end(client: &Client, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
    let (first, end) = ids_of(keyspace);
    let sql = "SELECT upper(ids) FROM block WHERE ids >= int8range($1, CAST($1 AS bigint) + 1) AND ids < int8range($2, CAST($2 AS bigint) + 1)
               ORDER BY ids DESC LIMIT 1";
    let last = client.query_opt(sql, &[&first, &end]).await?;
    let found: Option<i64> = last.map(|row| row.try_get(0)).transpose()?;
    Ok(number_of_end(keyspace, found))
}
