//! Counters of tags: they follow the tags that links have.
//!
//! 1. A link's tags are changed in the links' own transactions, which note the link in
//!    `tag_change`. Here its counters are added to those of its new tags, and taken away from those
//!    of its former ones. A batch that was made before is refused if it has visits of such a link,
//!    so each visit counts for the tags of its link once, whether it was stored before the change
//!    or after it.
//! 2. Batches wait while a step has the lock. So a step ends after a short time or some bytes, its
//!    links are done for good, and one process follows at a time.
//! 3. A tag that was deleted has no counters that anyone could ask for. They are removed, and not
//!    counted down link by link (`gone_tags.rs`).

use store::{postgres::PostgresSql, tag_changes};
use tokio_postgres::{Client, Transaction, types::Type};

use super::{LIMITS, LOCK, gone_tags, try_lock};
use crate::{
    Result,
    sql::{
        lock,
        tags::{self, STEP},
    },
};

/// Key of the advisory lock of this chore.
const FOLLOWER: i64 = 0x5348_4f52_5654_4147;

pub(super) async fn follow(client: &mut Client) -> Result<bool> {
    if gone_tags::remove(client, FOLLOWER).await? {
        return Ok(true);
    }
    let waiting = client.query_typed("SELECT 1::bigint FROM tag_change LIMIT 1", &[]).await?;
    if waiting.is_empty() {
        return Ok(false);
    }
    let transaction = client.transaction().await?;
    if !take_turn(&transaction, FOLLOWER).await? {
        return Ok(false);
    }
    // From here on no batch is stored until the transaction ends.
    let sql = &mut PostgresSql(&transaction);
    lock(sql, LOCK).await?;
    let changes = tag_changes(sql, STEP).await?;
    let last = tags::follow(sql, &changes).await?;
    let numbers = changes.iter().map(|change| change.number);
    let done: Vec<i64> = numbers.filter(|number| last.is_some_and(|last| *number <= last)).collect();
    let forget = "DELETE FROM tag_change WHERE number = ANY($1)";
    transaction.execute_typed(forget, &[(&done, Type::INT8_ARRAY)]).await?;
    transaction.commit().await?;
    Ok(done.len() < changes.len() || changes.len() == STEP)
}

/// Makes this transaction the one that does a chore. Returns whether it is.
pub(super) async fn take_turn(transaction: &Transaction<'_>, chore: i64) -> Result<bool> {
    transaction.batch_execute(LIMITS).await?;
    try_lock(transaction, chore).await
}
