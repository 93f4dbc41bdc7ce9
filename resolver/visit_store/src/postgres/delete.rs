//! Deletion of visits: counters and a cut at once, rows in steps.

use std::collections::{BTreeMap, HashMap};

use codes::LinkId;
use links::DomainId;
use tokio_postgres::{
    Client, GenericClient, Transaction,
    types::{ToSql, Type},
};
use visits::{Day, Subject, SubjectKey, VisitId};

use super::{LOCK, erase, merge::byte_columns, write::add_merged};
use crate::{
    Changes, Cut, DayDelta, DeletionStep, LinkVisits, VisitStoreError, columns::ByteColumns,
    link_visits::encode_links,
};

/// Rows deleted in one step.
const STEP: i64 = 20_000;

/// Returns the changes after a version. The version is read first: a change that comes in between is
/// among the cuts, and is returned once more with the next version.
pub(super) async fn changes(client: &impl GenericClient, after: i64) -> Result<Changes, VisitStoreError> {
    let version = client.query_typed("SELECT version FROM visit_state", &[]).await?;
    let query = "SELECT link_id, before_id FROM visit_cut WHERE version > $1";
    let rows = client.query_typed(query, &[(&after, Type::INT8)]).await?;
    let erasures = erase::after(client, after).await?;
    let cut = |row: &tokio_postgres::Row| {
        let link: i64 = row.get(0);
        Cut { link: (link != 0).then(|| LinkId::from_stored(link)), before: VisitId::from_stored(row.get(1)) }
    };
    let version = version.first().map_or(0, |row| row.get(0));
    Ok(Changes { version, cuts: rows.iter().map(cut).collect(), erasures })
}

/// Returns the tags whose counters include these links.
pub(super) async fn tags_of(
    client: &impl GenericClient,
    links: &[LinkId],
) -> Result<HashMap<LinkId, Vec<i64>>, VisitStoreError> {
    let links: Vec<i64> = links.iter().map(|link| link.get()).collect();
    let query = "SELECT link_id, tag_id FROM visit_tag WHERE link_id = ANY($1)";
    let mut tags: HashMap<LinkId, Vec<i64>> = HashMap::new();
    for row in client.query_typed(query, &[(&links, Type::INT8_ARRAY)]).await? {
        tags.entry(LinkId::from_stored(row.get(0))).or_default().push(row.get(1));
    }
    Ok(tags)
}

/// Marks batches that were made before this transaction as outdated, and returns the new version.
pub(super) async fn outdate(transaction: &Transaction<'_>) -> Result<i64, VisitStoreError> {
    let update = "UPDATE visit_state SET version = version + 1 RETURNING version";
    let rows = transaction.query_typed(update, &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Deletes the visits of a link, or all orphan visits. Returns how many there were.
pub(super) async fn delete(
    client: &mut Client,
    subject: Subject,
    before: VisitId,
) -> Result<u64, VisitStoreError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(erase::LIMITS).await?;
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
    transaction.batch_execute(&lock).await?;
    let (link, deleted) = match subject {
        Subject::Link(link) => (link.get(), delete_of_link(&transaction, link).await?),
        Subject::Orphans(..) => (0, delete_of_orphans(&transaction).await?),
        Subject::Tag(..) | Subject::All(_) => return Ok(0),
    };
    let version = outdate(&transaction).await?;
    let cut = "INSERT INTO visit_cut AS old (link_id, before_id, version, has_rows) VALUES ($1, $2, $3, true)
         ON CONFLICT (link_id) DO UPDATE SET before_id = greatest(old.before_id, excluded.before_id),
             version = excluded.version, has_rows = true";
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&link, Type::INT8), (&before.get(), Type::INT8), (&version, Type::INT8)];
    transaction.execute_typed(cut, &values).await?;
    transaction.commit().await?;
    Ok(deleted)
}

/// Removes the counters of a link, and takes them away from those of wider subjects.
async fn delete_of_link(transaction: &Transaction<'_>, link: LinkId) -> Result<u64, VisitStoreError> {
    let remove = "DELETE FROM visit_day WHERE kind = 0 AND subject = $1
         RETURNING part, day, total, bots, quarters, dimensions, visitors, addresses";
    let rows = transaction.query_typed(remove, &[(&link.get(), Type::INT8)]).await?;
    let tags = "SELECT tag_id FROM visit_tag WHERE link_id = $1";
    let tags = transaction.query_typed(tags, &[(&link.get(), Type::INT8)]).await?;
    let tags: Vec<i64> = tags.iter().map(|row| row.get(0)).collect();
    let mut sums: BTreeMap<(SubjectKey, i32), ByteColumns> = BTreeMap::new();
    let (mut total, mut bots) = (0, 0);
    for row in &rows {
        let counts: (i64, i64) = (row.get(2), row.get(3));
        (total, bots) = (total + counts.0, bots + counts.1);
        let columns = byte_columns(row, 4);
        let domain = Some(DomainId::from_stored(row.get::<_, i64>(0) - 1));
        let of_tags = tags.iter().flat_map(|tag| [Subject::Tag(*tag, None), Subject::Tag(*tag, domain)]);
        for subject in [Subject::All(None), Subject::All(domain)].into_iter().chain(of_tags) {
            sums.entry((subject.key(), row.get(1))).or_default().append(&columns);
        }
    }
    let mut wider = Vec::new();
    for ((subject, day), columns) in sums {
        wider.push(DayDelta { subject, day: Day::from_stored(day), delta: columns.negated()? });
    }
    add_merged(transaction, &wider).await?;
    let remove = "DELETE FROM visit_month WHERE kind = 0 AND subject = $1";
    transaction.execute_typed(remove, &[(&link.get(), Type::INT8)]).await?;
    let taken = encode_links(&[LinkVisits { link, total: -total, bots: -bots, last: 0 }]);
    let insert = "INSERT INTO visit_link_batch (links) VALUES ($1)";
    transaction.execute_typed(insert, &[(&taken, Type::BYTEA)]).await?;
    Ok(u64::try_from(total).unwrap_or(0))
}

/// Removes the counters of orphan visits. Counts of outcomes, which links and everything have too,
/// stay.
async fn delete_of_orphans(transaction: &Transaction<'_>) -> Result<u64, VisitStoreError> {
    let kind = Subject::Orphans(None, None).key().kind;
    let total =
        "SELECT coalesce(sum(total), 0)::bigint FROM visit_day WHERE kind = $1 AND subject = 0 AND part = 0";
    let total = transaction.query_typed(total, &[(&kind, Type::INT2)]).await?;
    for table in ["visit_day", "visit_month"] {
        let remove = format!("DELETE FROM {table} WHERE kind = $1");
        transaction.execute_typed(&remove, &[(&kind, Type::INT2)]).await?;
    }
    Ok(total.first().map_or(0, |row| u64::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
}

/// Deletes some of the rows before a cut, or else some of those of an erasure.
pub(super) async fn delete_rows(client: &mut Client) -> Result<DeletionStep, VisitStoreError> {
    let cut = "SELECT link_id, before_id, version FROM visit_cut WHERE has_rows ORDER BY version LIMIT 1";
    let cuts = client.query_typed(cut, &[]).await?;
    let Some(cut) = cuts.first() else { return erase::delete_rows(client).await };
    let (link, before, version): (i64, i64, i64) = (cut.get(0), cut.get(1), cut.get(2));
    let bound = "SELECT max(id) FROM (SELECT id FROM visit WHERE link_id = $1 AND id < $2 ORDER BY id LIMIT $3) AS step";
    let bound =
        client.query_typed(bound, &[(&link, Type::INT8), (&before, Type::INT8), (&STEP, Type::INT8)]).await?;
    let Some(bound) = bound.first().and_then(|row| row.get::<_, Option<i64>>(0)) else {
        let done = "UPDATE visit_cut SET has_rows = false WHERE link_id = $1 AND version = $2";
        client.execute_typed(done, &[(&link, Type::INT8), (&version, Type::INT8)]).await?;
        return Ok(DeletionStep { deleted: 0, has_more: true });
    };
    let remove = "DELETE FROM visit WHERE link_id = $1 AND id <= $2";
    let deleted = client.execute_typed(remove, &[(&link, Type::INT8), (&bound, Type::INT8)]).await?;
    Ok(DeletionStep { deleted, has_more: true })
}
