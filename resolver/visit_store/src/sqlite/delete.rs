//! Deletion of visits: counters and a cut at once, rows in steps.

use std::collections::{BTreeMap, HashMap};

use codes::LinkId;
use rusqlite::{Connection, OptionalExtension as _, params};
use visits::{Day, Subject, SubjectKey, VisitId};

use super::{days, erase, link_visits};
use crate::{
    Changes, Cut, DayDelta, DeletionStep, LinkVisits, MERGED, VisitStoreError, columns::ByteColumns,
};

/// Rows deleted in one step.
const STEP: i64 = 20_000;

/// Returns the changes after a version.
pub(super) fn changes(connection: &Connection, after: i64) -> Result<Changes, VisitStoreError> {
    let version = connection.query_row("SELECT version FROM visit_state", [], |row| row.get(0))?;
    let query = "SELECT link_id, before_id FROM visit_cut WHERE version > ?1 ORDER BY version";
    let mut query = connection.prepare_cached(query)?;
    let cuts = query.query_map([after], |row| {
        let link: i64 = row.get(0)?;
        let link = (link != 0).then(|| LinkId::from_stored(link));
        Ok(Cut { link, before: VisitId::from_stored(row.get(1)?) })
    })?;
    let erasures = erase::after(connection, after)?;
    Ok(Changes { version, cuts: cuts.collect::<Result<_, _>>()?, erasures })
}

/// Returns the tags whose counters include these links.
pub(super) fn tags_of(
    connection: &Connection,
    links: &[LinkId],
) -> Result<HashMap<LinkId, Vec<i64>>, VisitStoreError> {
    let mut query = connection.prepare_cached("SELECT tag_id FROM visit_tag WHERE link_id = ?1")?;
    let mut found = HashMap::new();
    for link in links {
        let tags: Vec<i64> = query.query_map([link.get()], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if !tags.is_empty() {
            found.insert(*link, tags);
        }
    }
    Ok(found)
}

/// Marks batches that were made before this transaction as outdated, and returns the new version.
pub(super) fn outdate(transaction: &Connection) -> Result<i64, VisitStoreError> {
    let update = "UPDATE visit_state SET version = version + 1 RETURNING version";
    Ok(transaction.query_row(update, [], |row| row.get(0))?)
}

/// Deletes the visits of a link, or all orphan visits. Returns how many there were.
pub(super) fn delete(
    transaction: &Connection,
    subject: Subject,
    before: VisitId,
) -> Result<u64, VisitStoreError> {
    let (link, deleted) = match subject {
        Subject::Link(link) => (link.get(), delete_of_link(transaction, link)?),
        Subject::Orphans(..) => (0, delete_of_orphans(transaction)?),
        Subject::Tag(..) | Subject::All(_) => return Ok(0),
    };
    let version = outdate(transaction)?;
    let cut = "INSERT INTO visit_cut AS old (link_id, before_id, version, has_rows) VALUES (?1, ?2, ?3, 1)
         ON CONFLICT (link_id) DO UPDATE SET before_id = max(old.before_id, excluded.before_id),
             version = excluded.version, has_rows = 1";
    transaction.execute(cut, params![link, before.get(), version])?;
    Ok(deleted)
}

/// Removes the counters of a link, and takes them away from those of wider subjects.
fn delete_of_link(transaction: &Connection, link: LinkId) -> Result<u64, VisitStoreError> {
    let Counters { days, total, bots } = take_counters(transaction, link)?;
    let tags = tags_of(transaction, &[link])?.remove(&link).unwrap_or_default();
    let subjects: Vec<Subject> = std::iter::once(Subject::All(None))
        .chain(tags.into_iter().map(|tag| Subject::Tag(tag, None)))
        .collect();
    let mut wider = Vec::with_capacity(days.len() * subjects.len());
    for ((part, day), columns) in days {
        let (day, delta) = (Day::from_stored(day), columns.negated()?);
        wider.extend(subjects.iter().map(|subject| {
            let subject = SubjectKey { part, ..subject.key() };
            DayDelta { subject, day, delta: delta.clone() }
        }));
    }
    days::add(transaction, MERGED, &wider)?;
    transaction.execute("DELETE FROM visit_month WHERE kind = 0 AND subject = ?1", [link.get()])?;
    link_visits::insert(transaction, &[LinkVisits { link, total: -total, bots: -bots, last: 0 }])?;
    Ok(u64::try_from(total).unwrap_or(0))
}

/// The counters of a link: columns by part and day, and sums.
#[derive(Default)]
struct Counters {
    days: BTreeMap<(i64, i32), ByteColumns>,
    total: i64,
    bots: i64,
}

/// Removes the counters of a link, and returns them under the parts of wider subjects: everything,
/// and everything on a domain.
fn take_counters(transaction: &Connection, link: LinkId) -> Result<Counters, VisitStoreError> {
    let remove = "DELETE FROM visit_day WHERE kind = 0 AND subject = ?1
         RETURNING part, day, total, bots, quarters, dimensions, visitors, addresses";
    let mut remove = transaction.prepare(remove)?;
    let mut rows = remove.query([link.get()])?;
    let mut counters = Counters::default();
    while let Some(row) = rows.next()? {
        counters.total += row.get::<_, i64>(2)?;
        counters.bots += row.get::<_, i64>(3)?;
        let columns = days::byte_columns(row, 4)?;
        for part in [0, row.get(0)?] {
            counters.days.entry((part, row.get(1)?)).or_default().append(&columns);
        }
    }
    Ok(counters)
}

/// Removes the counters of orphan visits. Counts of outcomes, which links and everything have too,
/// stay.
fn delete_of_orphans(transaction: &Connection) -> Result<u64, VisitStoreError> {
    let kind = Subject::Orphans(None, None).key().kind;
    let total = "SELECT coalesce(sum(total), 0) FROM visit_day WHERE kind = ?1 AND subject = 0 AND part = 0";
    let total: i64 = transaction.query_row(total, [kind], |row| row.get(0))?;
    for table in ["visit_day", "visit_month"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE kind = ?1"), [kind])?;
    }
    Ok(u64::try_from(total).unwrap_or(0))
}

/// Deletes some of the rows before a cut, or else some of those of an erasure.
pub(super) fn delete_rows(connection: &Connection) -> Result<DeletionStep, VisitStoreError> {
    let cut = "SELECT link_id, before_id FROM visit_cut WHERE has_rows ORDER BY version LIMIT 1";
    let cut = connection.query_row(cut, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((link, before)): Option<(i64, i64)> = cut else { return erase::delete_rows(connection) };
    let remove = "DELETE FROM visit WHERE id IN
         (SELECT id FROM visit WHERE link_id = ?1 AND id < ?2 ORDER BY id LIMIT ?3)";
    let deleted = connection.execute(remove, params![link, before, STEP])?;
    if deleted == 0 {
        connection.execute("UPDATE visit_cut SET has_rows = 0 WHERE link_id = ?1", [link])?;
    }
    Ok(DeletionStep { deleted: u64::try_from(deleted).unwrap_or(u64::MAX), has_more: true })
}
