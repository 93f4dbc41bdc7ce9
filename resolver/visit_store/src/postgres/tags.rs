//! Counters of tags: they follow the tags that links have.
//!
//! 1. A link's tags are changed in the links' own transactions, which note the link in `tag_change`.
//!    Here its counters are added to those of its new tags, and taken away from those of its former
//!    ones. A batch that was made before is refused if it has visits of such a link, so each visit
//!    counts for the tags of its link once, whether it was stored before the change or after it.
//! 2. Batches wait while a step has the lock. So a step ends after a short time or some bytes, its
//!    links are done for good, and one process follows at a time.
//! 3. A tag that was deleted has no counters that anyone could ask for. They are removed, and not
//!    counted down link by link (`gone_tags.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use codes::LinkId;
use tokio::time::Instant;
use tokio_postgres::{Client, Transaction, types::Type};
use visits::Day;

use super::{LOCK, delete::outdate, erase::LIMITS, gone_tags, merge::byte_columns, write::add_merged};
use crate::{
    VisitStoreError,
    tag_days::{LinkDays, STEP_BYTES, TagDays},
};

/// Changes looked at in one step.
const STEP: i64 = 200;
/// Time for which a step reads counters. Batches wait for it.
const STEP_TIME: Duration = Duration::from_millis(250);
/// Key of the advisory lock of this chore.
const FOLLOWER: i64 = 0x5348_4f52_5654_4147;

/// The tags of some links.
type Tags = BTreeMap<i64, BTreeSet<i64>>;

/// Lets the counters follow some changes of tags. Returns whether there are more.
pub(super) async fn follow(client: &mut Client) -> Result<bool, VisitStoreError> {
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
    let select = "SELECT number, link_id FROM tag_change ORDER BY number LIMIT $1";
    let changes = transaction.query_typed(select, &[(&STEP, Type::INT8)]).await?;
    let changes: Vec<(i64, i64)> = changes.iter().map(|row| (row.get(0), row.get(1))).collect();
    let followed = follow_some(&transaction, &changes).await?;
    let done: Vec<i64> =
        changes.iter().filter(|(_, link)| followed.contains(link)).map(|(number, _)| *number).collect();
    let forget = "DELETE FROM tag_change WHERE number = ANY($1)";
    transaction.execute_typed(forget, &[(&done, Type::INT8_ARRAY)]).await?;
    transaction.commit().await?;
    Ok(done.len() < changes.len() || changes.len() == usize::try_from(STEP).unwrap_or(usize::MAX))
}

/// Makes this transaction the one that does a chore. Returns whether it is.
pub(super) async fn take_turn(transaction: &Transaction<'_>, chore: i64) -> Result<bool, VisitStoreError> {
    transaction.batch_execute(LIMITS).await?;
    let lock = format!("SELECT pg_try_advisory_xact_lock({chore})");
    Ok(transaction.query_typed(&lock, &[]).await?.first().is_some_and(|row| row.get(0)))
}

/// Lets the counters follow the tags of as many links as a step has time for, and returns them.
async fn follow_some(
    transaction: &Transaction<'_>,
    changes: &[(i64, i64)],
) -> Result<BTreeSet<i64>, VisitStoreError> {
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let began = Instant::now();
    let links: Vec<i64> = changes.iter().map(|(_, link)| *link).collect();
    let now = "SELECT link_id, tag_id FROM link_tag JOIN tag ON tag.id = tag_id WHERE link_id = ANY($1)";
    let now = tags(transaction, now, &links).await?;
    let counted = "SELECT link_id, tag_id FROM visit_tag WHERE link_id = ANY($1)";
    let counted = tags(transaction, counted, &links).await?;
    let (mut gained, mut lost) = (TagDays::default(), TagDays::default());
    let (mut followed, mut has_changed, none) = (BTreeSet::new(), false, BTreeSet::new());
    for link in links {
        let (now, counted) = (now.get(&link).unwrap_or(&none), counted.get(&link).unwrap_or(&none));
        if now == counted || followed.contains(&link) {
            followed.insert(link);
            continue;
        }
        let is_over = gained.bytes() + lost.bytes() >= STEP_BYTES || began.elapsed() >= STEP_TIME;
        // The first link is followed in any case, so that each step comes further.
        if is_over && has_changed {
            continue;
        }
        let days = days(transaction, LinkId::from_stored(link)).await?;
        now.difference(counted).for_each(|tag| gained.add(*tag, &days));
        counted.difference(now).for_each(|tag| lost.add(*tag, &days));
        set_counted(transaction, link, now).await?;
        followed.insert(link);
        has_changed = true;
    }
    if has_changed {
        add_merged(transaction, &gained.gained()?).await?;
        add_merged(transaction, &lost.lost()?).await?;
        // For resolvers of earlier releases, which compare nothing else.
        outdate(transaction).await?;
    }
    Ok(followed)
}

/// Notes the tags whose counters include a link.
async fn set_counted(
    transaction: &Transaction<'_>,
    link: i64,
    now: &BTreeSet<i64>,
) -> Result<(), VisitStoreError> {
    let now: Vec<i64> = now.iter().copied().collect();
    let remove = "DELETE FROM visit_tag WHERE link_id = $1 AND tag_id <> ALL($2)";
    let add = "INSERT INTO visit_tag (link_id, tag_id) SELECT $1, * FROM unnest($2) ON CONFLICT DO NOTHING";
    for statement in [remove, add] {
        transaction.execute_typed(statement, &[(&link, Type::INT8), (&now, Type::INT8_ARRAY)]).await?;
    }
    Ok(())
}

async fn tags(transaction: &Transaction<'_>, query: &str, links: &[i64]) -> Result<Tags, VisitStoreError> {
    let mut tags = Tags::new();
    for row in transaction.query_typed(query, &[(&links, Type::INT8_ARRAY)]).await? {
        tags.entry(row.get(0)).or_default().insert(row.get(1));
    }
    Ok(tags)
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
