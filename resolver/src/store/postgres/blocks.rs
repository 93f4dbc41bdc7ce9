//! The block register in Postgres.

use issuer::block::Span;
use tokio_postgres::{Client, error::SqlState};

use crate::{
    codes::LinkId,
    store::{BlockEntry, Registration, StoreError},
};

/// Postgres has no unsigned numbers; generations and incarnations count by ones and stay far below.
fn signed(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Corrupt(format!("{value} does not fit a bigint")))
}

/// Registers a block. The exclusion constraint decides; if it refuses because an earlier copy of this very call got
/// through, that copy's row is found.
pub(super) async fn register(client: &Client, block: &BlockEntry) -> Result<Registration, StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let (generation, incarnation) = (signed(block.generation)?, signed(block.incarnation)?);
    let inserted = client
        .execute(
            "INSERT INTO block (ids, generation, holder, incarnation) VALUES (int8range($1, $2), $3, $4, $5)",
            &[&first, &end, &generation, &block.holder, &incarnation],
        )
        .await;
    match inserted {
        Ok(_) => return Ok(Registration::Registered),
        Err(error) if error.code() == Some(&SqlState::EXCLUSION_VIOLATION) => {}
        Err(error) => return Err(error.into()),
    }
    let mine = client
        .query_opt(
            "SELECT 1 FROM block
             WHERE ids = int8range($1, $2) AND generation = $3 AND holder = $4 AND incarnation = $5",
            &[&first, &end, &generation, &block.holder, &incarnation],
        )
        .await?;
    Ok(if mine.is_some() { Registration::Registered } else { Registration::Overlaps })
}

/// Replaces the block's row by rows for what is kept.
pub(super) async fn release(
    client: &mut Client,
    block: &BlockEntry,
    kept: &[Span],
) -> Result<(), StoreError> {
    let (generation, incarnation) = (signed(block.generation)?, signed(block.incarnation)?);
    let (firsts, ends): (Vec<i64>, Vec<i64>) =
        kept.iter().map(|span| LinkId::range(block.keyspace, *span)).unzip();
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let transaction = client.transaction().await?;
    transaction
        .execute(
            "DELETE FROM block WHERE generation = $1 AND holder = $2 AND ids <@ int8range($3, $4)",
            &[&generation, &block.holder, &first, &end],
        )
        .await?;
    transaction
        .execute(
            "INSERT INTO block (ids, generation, holder, incarnation)
             SELECT int8range(first, \"end\"), $3, $4, $5 FROM unnest($1::bigint[], $2::bigint[]) AS kept (first, \"end\")",
            &[&firsts, &ends, &generation, &block.holder, &incarnation],
        )
        .await?;
    Ok(transaction.commit().await?)
}
