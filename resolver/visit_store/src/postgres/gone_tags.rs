//! Removal of what a deleted tag has left: its links and its counters.
//!
//! Each statement removes some rows and commits, so a million links are removed in many steps. No
//! batch waits for them: what a batch still adds to the counters is removed with them at the end.

use store::{Sql as _, postgres::PostgresSql};
use tokio_postgres::Client;

use super::{LIMITS, LOCK, MERGER, tags::FOLLOWER, try_lock};
use crate::{
    Result,
    sql::{
        lock,
        tags::{remove_gone_counters, remove_gone_links},
        transferred::Transferred,
    },
};

/// Removes some rows of a deleted tag. Returns whether there may be more.
pub(super) async fn remove(client: &mut Client, transferred: &dyn Transferred) -> Result<bool> {
    let oldest = "SELECT tag_id FROM tag_gone ORDER BY tag_id LIMIT 1";
    let Some(tag) = PostgresSql(&*client).number(oldest, &[]).await? else { return Ok(false) };
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    let sql = &mut PostgresSql(&transaction);
    if !try_lock(sql, FOLLOWER).await? {
        return Ok(false);
    }
    let has_links = remove_gone_links(sql, &["visit_tag", "link_tag"], tag).await?;
    if !has_links {
        // Batches that found a link of the tag end before this lock is given, and no later one
        // does.
        lock(sql, LOCK).await?;
    }
    transaction.commit().await?;
    if has_links { Ok(true) } else { remove_counters(client, tag, transferred).await }
}

/// Removes some counters, and forgets the tag once there are none. A day that is closed meanwhile
/// would get its row after this has looked, so the two take turns.
async fn remove_counters(client: &mut Client, tag: i64, transferred: &dyn Transferred) -> Result<bool> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    let sql = &mut PostgresSql(&transaction);
    if !try_lock(sql, MERGER).await? {
        return Ok(false);
    }
    if !remove_gone_counters(sql, tag).await? {
        transferred.forget_tag(tag).await?;
        sql.execute("DELETE FROM tag_gone WHERE tag_id = $1", &[tag.into()]).await?;
    }
    transaction.commit().await?;
    Ok(true)
}
