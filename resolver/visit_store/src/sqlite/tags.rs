//! Removal of what a deleted tag has left.

use rusqlite::{Connection, params};
use visits::Subject;

use crate::Result;

/// Rows removed in one step: the rows of links are short, and those of counters long.
const GONE_LINKS: i64 = 10_000;
const GONE_COUNTERS: i64 = 500;

/// Removes some rows of a tag that was deleted. Returns whether there may be more.
pub(super) fn remove_gone(connection: &Connection, tag: i64) -> Result<bool> {
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
