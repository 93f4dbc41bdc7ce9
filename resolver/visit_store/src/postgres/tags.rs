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

use store::{Sql, Value, tag_changes};

use super::{LOCK, try_lock};
use crate::{
    Result,
    sql::{
        lock,
        tags::{self, STEP},
        transferred::Transferred,
    },
};

/// Key of the advisory lock of this chore.
pub(super) const FOLLOWER: i64 = 0x5348_4f52_5654_4147;

pub(super) async fn follow(sql: &mut dyn Sql, transferred: &dyn Transferred) -> Result<bool> {
    let waiting = sql.query("SELECT number FROM tag_change LIMIT 1", &[]).await?;
    if waiting.is_empty() || !try_lock(sql, FOLLOWER).await? {
        return Ok(false);
    }
    // From here on no batch is stored until the transaction ends.
    lock(sql, LOCK).await?;
    let changes = tag_changes(sql, STEP).await?;
    let last = tags::follow(sql, &changes, transferred).await?;
    let numbers = changes.iter().map(|change| change.number);
    let done: Vec<i64> = numbers.filter(|number| last.is_some_and(|last| *number <= last)).collect();
    let forget = "DELETE FROM tag_change WHERE number = ANY($1)";
    let has_more = done.len() < changes.len() || changes.len() == STEP;
    sql.execute(forget, &[Value::IntArray(done)]).await?;
    Ok(has_more)
}
