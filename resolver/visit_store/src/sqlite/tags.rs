//! Counters of tags: they follow the tags that links have.

use std::collections::{BTreeMap, BTreeSet};

use codes::LinkId;
use rusqlite::{Connection, params};
use store::TagChange;
use visits::Day;

use super::{days, delete::outdate};
use crate::{MERGED, VisitStoreError, tag_days::LinkDays};

/// Changes handled in one step.
pub(super) const STEP: usize = 200;

/// Lets the counters follow changes of tags. A repeated call changes nothing more, so it may be
/// repeated after a crash, before the links' database has forgotten the changes.
pub(super) fn follow(transaction: &Connection, changes: &[TagChange]) -> Result<(), VisitStoreError> {
    let links: BTreeMap<LinkId, &TagChange> = changes.iter().map(|change| (change.link, change)).collect();
    let mut has_changed = false;
    for (link, change) in links {
        has_changed |= follow_link(transaction, link, &change.tags)?;
    }
    if has_changed {
        outdate(transaction)?;
    }
    Ok(())
}

fn follow_link(transaction: &Connection, link: LinkId, tags: &[i64]) -> Result<bool, VisitStoreError> {
    let now: BTreeSet<i64> = tags.iter().copied().collect();
    let mut counted = transaction.prepare_cached("SELECT tag_id FROM visit_tag WHERE link_id = ?1")?;
    let counted: BTreeSet<i64> =
        counted.query_map([link.get()], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if now == counted {
        return Ok(false);
    }
    let days = days_of(transaction, link)?;
    for tag in now.difference(&counted) {
        days::add(transaction, MERGED, &days.deltas(*tag, false)?)?;
        let add = "INSERT INTO visit_tag (link_id, tag_id) VALUES (?1, ?2)";
        transaction.execute(add, params![link.get(), tag])?;
    }
    for tag in counted.difference(&now) {
        days::add(transaction, MERGED, &days.deltas(*tag, true)?)?;
        let remove = "DELETE FROM visit_tag WHERE link_id = ?1 AND tag_id = ?2";
        transaction.execute(remove, params![link.get(), tag])?;
    }
    Ok(true)
}

fn days_of(transaction: &Connection, link: LinkId) -> Result<LinkDays, VisitStoreError> {
    let query = "SELECT day, part, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = 0 AND subject = ?1";
    let mut query = transaction.prepare_cached(query)?;
    let mut rows = query.query([link.get()])?;
    let mut days = LinkDays::default();
    while let Some(row) = rows.next()? {
        days.add(Day::from_stored(row.get(0)?), row.get(1)?, &days::byte_columns(row, 2)?);
    }
    Ok(days)
}
