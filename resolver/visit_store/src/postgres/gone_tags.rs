//! Removal of what a deleted tag has left: its links and its counters.
//!
//! Each statement removes some rows and commits, so a million links are removed in many steps. No
//! batch waits for them: what a batch still adds to the counters is removed with them at the end.

use tokio_postgres::{Client, types::Type};
use visits::Subject;

use super::{LOCK, tags::take_turn};
use crate::Result;

/// Rows removed by one statement: the rows of links are short, and those of counters long.
const LINKS: i64 = 10_000;
const COUNTERS: i64 = 500;

/// Removes some rows of a deleted tag. Returns whether there may be more.
pub(super) async fn remove(client: &mut Client, chore: i64) -> Result<bool> {
    let gone = client.query_typed("SELECT tag_id FROM tag_gone ORDER BY tag_id LIMIT 1", &[]).await?;
    let Some(tag) = gone.first().map(|row| row.get::<_, i64>(0)) else { return Ok(false) };
    let transaction = client.transaction().await?;
    if !take_turn(&transaction, chore).await? {
        return Ok(false);
    }
    let kind = Subject::Tag(tag, None).key().kind;
    let of_links = |table: &str| (of_table(table, "tag_id = $1"), LINKS);
    let of_counters = |table: &str| (of_table(table, &format!("kind = {kind} AND subject = $1")), COUNTERS);
    let (links, counters) =
        (["visit_tag", "link_tag"].map(of_links), ["visit_day", "visit_month"].map(of_counters));
    for (statement, most) in links {
        if transaction.execute_typed(&statement, &[(&tag, Type::INT8), (&most, Type::INT8)]).await? > 0 {
            transaction.commit().await?;
            return Ok(true);
        }
    }
    // Batches that found a link of the tag end before this lock is given, and no later one does.
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    transaction.commit().await?;
    for (statement, most) in counters {
        if client.execute_typed(&statement, &[(&tag, Type::INT8), (&most, Type::INT8)]).await? > 0 {
            return Ok(true);
        }
    }
    client.execute_typed("DELETE FROM tag_gone WHERE tag_id = $1", &[(&tag, Type::INT8)]).await?;
    Ok(true)
}

fn of_table(table: &str, condition: &str) -> String {
    format!(
        "DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {condition} LIMIT $2))"
    )
}
