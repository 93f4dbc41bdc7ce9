//! Counters of tags: they follow the tags that links have.
//!
//! A batch waits for a step, so steps are short. What a step has done is kept: its links are not
//! followed again.

use std::{collections::BTreeSet, time::Duration};

use codes::LinkId;
use rusqlite::{Connection, params};
use store::TagChange;
use tokio::time::Instant;
use visits::{Day, Subject};

use super::{days, delete::outdate};
use crate::{
    MERGED, VisitStoreError,
    tag_days::{LinkDays, STEP_BYTES, TagDays},
};

/// Changes looked at in one step.
pub(super) const STEP: usize = 200;
/// Time for which a step reads counters.
const STEP_TIME: Duration = Duration::from_millis(250);
/// Rows removed in one step: the rows of links are short, and those of counters long.
const GONE_LINKS: i64 = 10_000;
const GONE_COUNTERS: i64 = 500;

/// Lets the counters follow changes of tags, and returns the number of the last one that it has come
/// to. A repeated call changes nothing more, so it may be repeated after a crash, before the links'
/// database has forgotten the changes.
pub(super) fn follow(
    transaction: &Connection,
    changes: &[TagChange],
) -> Result<Option<i64>, VisitStoreError> {
    let began = Instant::now();
    let (mut gained, mut lost) = (TagDays::default(), TagDays::default());
    let (mut last, mut has_changed) = (None, false);
    for TagChange { number, link, tags } in changes {
        let now: BTreeSet<i64> = tags.iter().copied().collect();
        let counted = counted(transaction, *link)?;
        if now != counted {
            let is_over = gained.bytes() + lost.bytes() >= STEP_BYTES || began.elapsed() >= STEP_TIME;
            if is_over && has_changed {
                break;
            }
            let days = days_of(transaction, *link)?;
            now.difference(&counted).for_each(|tag| gained.add(*tag, &days));
            counted.difference(&now).for_each(|tag| lost.add(*tag, &days));
            set_counted(transaction, *link, &now)?;
            has_changed = true;
        }
        last = Some(*number);
    }
    if has_changed {
        days::add(transaction, MERGED, &gained.gained()?)?;
        days::add(transaction, MERGED, &lost.lost()?)?;
        outdate(transaction)?;
    }
    Ok(last)
}

/// Removes some rows of a tag that was deleted. Returns whether there may be more.
pub(super) fn remove_gone(connection: &Connection, tag: i64) -> Result<bool, VisitStoreError> {
    let links = "DELETE FROM visit_tag WHERE (link_id, tag_id) IN
         (SELECT link_id, tag_id FROM visit_tag WHERE tag_id = ?1 LIMIT ?2)";
    if connection.execute(links, params![tag, GONE_LINKS])? > 0 {
        return Ok(true);
    }
    let kind = Subject::Tag(tag, None).key().kind;
    for table in ["visit_day", "visit_month"] {
        let remove = format!(
            "DELETE FROM {table} WHERE rowid IN
                 (SELECT rowid FROM {table} WHERE kind = {kind} AND subject = ?1 LIMIT ?2)"
        );
        if connection.execute(&remove, params![tag, GONE_COUNTERS])? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn counted(transaction: &Connection, link: LinkId) -> Result<BTreeSet<i64>, VisitStoreError> {
    let mut counted = transaction.prepare_cached("SELECT tag_id FROM visit_tag WHERE link_id = ?1")?;
    Ok(counted.query_map([link.get()], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Notes the tags whose counters include a link.
fn set_counted(transaction: &Connection, link: LinkId, now: &BTreeSet<i64>) -> Result<(), VisitStoreError> {
    transaction.execute("DELETE FROM visit_tag WHERE link_id = ?1", [link.get()])?;
    for tag in now {
        let add = "INSERT INTO visit_tag (link_id, tag_id) VALUES (?1, ?2)";
        transaction.execute(add, params![link.get(), tag])?;
    }
    Ok(())
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
