//! Counters of tags: they follow the tags that links have.
//!
//! A link's tags are changed in the links' own transactions, which note the link in `tag_change`.
//! Here its counters are added to those of its new tags, and taken away from those of its former
//! ones. Batches that were made before are refused, so each visit counts for the tags of its link
//! once, whether it was stored before the change or after it.

use std::collections::BTreeSet;

use codes::LinkId;
use tokio_postgres::{Client, Transaction, types::Type};
use visits::Day;

use super::{LOCK, delete::outdate, erase::LIMITS, merge::byte_columns, write::add_merged};
use crate::{VisitStoreError, tag_days::LinkDays};

/// Changes handled in one step.
const STEP: i64 = 200;

/// Lets the counters follow some changes of tags. Returns whether there are more.
pub(super) async fn follow(client: &mut Client) -> Result<bool, VisitStoreError> {
    let waiting = client.query_typed("SELECT 1::bigint FROM tag_change LIMIT 1", &[]).await?;
    if waiting.is_empty() {
        return Ok(false);
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let take =
        "DELETE FROM tag_change WHERE number IN (SELECT number FROM tag_change ORDER BY number LIMIT $1)
         RETURNING link_id";
    let changes = transaction.query_typed(take, &[(&STEP, Type::INT8)]).await?;
    let links: BTreeSet<i64> = changes.iter().map(|row| row.get(0)).collect();
    let mut has_changed = false;
    for link in links {
        has_changed |= follow_link(&transaction, LinkId::from_stored(link)).await?;
    }
    if has_changed {
        outdate(&transaction).await?;
    }
    transaction.commit().await?;
    Ok(changes.len() == usize::try_from(STEP).unwrap_or(usize::MAX))
}

/// Lets the counters follow the tags of a link. Returns whether they had changed.
async fn follow_link(transaction: &Transaction<'_>, link: LinkId) -> Result<bool, VisitStoreError> {
    let now = tags(transaction, "SELECT tag_id FROM link_tag WHERE link_id = $1", link).await?;
    let counted = tags(transaction, "SELECT tag_id FROM visit_tag WHERE link_id = $1", link).await?;
    if now == counted {
        return Ok(false);
    }
    let days = days(transaction, link).await?;
    for tag in now.difference(&counted) {
        add_merged(transaction, &days.deltas(*tag, false)?).await?;
        let add = "INSERT INTO visit_tag (link_id, tag_id) VALUES ($1, $2)";
        transaction.execute_typed(add, &[(&link.get(), Type::INT8), (tag, Type::INT8)]).await?;
    }
    for tag in counted.difference(&now) {
        add_merged(transaction, &days.deltas(*tag, true)?).await?;
        let remove = "DELETE FROM visit_tag WHERE link_id = $1 AND tag_id = $2";
        transaction.execute_typed(remove, &[(&link.get(), Type::INT8), (tag, Type::INT8)]).await?;
    }
    Ok(true)
}

async fn tags(
    transaction: &Transaction<'_>,
    query: &str,
    link: LinkId,
) -> Result<BTreeSet<i64>, VisitStoreError> {
    let rows = transaction.query_typed(query, &[(&link.get(), Type::INT8)]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

async fn days(transaction: &Transaction<'_>, link: LinkId) -> Result<LinkDays, VisitStoreError> {
    let query = "SELECT day, part, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = 0 AND subject = $1";
    let mut days = LinkDays::default();
    for row in transaction.query_typed(query, &[(&link.get(), Type::INT8)]).await? {
        days.add(Day::from_stored(row.get(0)), row.get(1), &byte_columns(&row, 2));
    }
    Ok(days)
}
