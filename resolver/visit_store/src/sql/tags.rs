//! Counters of tags: they follow the tags that links have.
//!
//! Batches wait for a step, so a step ends after a short time or some bytes. What it has done is
//! kept: its links are not followed again.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use codes::LinkId;
use links::DomainId;
use store::{Dialect, Row, Sql, TagChange, Value, insert_rows};
use tokio::time::Instant;
use visits::{Day, Subject, tally::Counters};

use super::{
    changes::{outdate, tags_of},
    days, delete_some,
    sums::Sums,
    take_counters,
    transferred::{LinkDays, Transferred},
};
use crate::Result;

pub(crate) const STEP: usize = 200;
/// Rows of a deleted tag that are removed at once: those of links are short, and those of counters
/// long.
const GONE_LINKS: i64 = 10_000;
const GONE_COUNTERS: i64 = 500;
/// Counters of links that a step collects for their tags, in bytes. With it, a step that has to
/// read the counters of years ends with the first link.
const STEP_BYTES: usize = 4 << 20;
/// Time for which a step reads counters.
const STEP_TIME: Duration = Duration::from_millis(250);

/// Lets the counters follow changes of tags, and returns the number of the last one that it has
/// come to. A repeated call changes nothing more.
pub(crate) async fn follow(
    sql: &mut dyn Sql,
    changes: &[TagChange],
    transferred: &dyn Transferred,
) -> Result<Option<i64>> {
    let began = Instant::now();
    let links: Vec<LinkId> = changes.iter().map(|change| change.link).collect();
    let are_transferred = transferred.links_with_days(&links).await?;
    let counted = tags_of(sql, &links).await?.into_iter();
    let mut counted: HashMap<LinkId, BTreeSet<i64>> =
        counted.map(|(link, tags)| (link, tags.into_iter().collect())).collect();
    let (mut gained, mut lost) = (Sums::default(), Sums::default());
    let (mut last, mut has_changed) = (None, false);
    for TagChange { number, link, tags } in changes {
        let now: BTreeSet<i64> = tags.iter().copied().collect();
        let counted = counted.entry(*link).or_default();
        if now != *counted {
            // The first link is followed in any case, so that each step comes further.
            let is_over = gained.bytes + lost.bytes >= STEP_BYTES || began.elapsed() >= STEP_TIME;
            if is_over && has_changed {
                break;
            }
            let mut days = days_of(sql, *link).await?;
            if are_transferred.contains(link) {
                days.append(&mut transferred.days_of_link(sql, *link).await?);
            }
            now.difference(counted).for_each(|tag| add(&mut gained, *tag, &days));
            counted.difference(&now).for_each(|tag| add(&mut lost, *tag, &days));
            set_counted(sql, *link, &now).await?;
            *counted = now;
            has_changed = true;
        }
        last = Some(*number);
    }
    if has_changed {
        days::add(sql, transferred.slot_of_changes(), &gained.deltas(Counters::merged)?).await?;
        days::add(sql, transferred.slot_of_changes(), &lost.deltas(Counters::negated)?).await?;
        // For resolvers of earlier releases, which compare nothing else.
        outdate(sql).await?;
    }
    Ok(last)
}

async fn set_counted(sql: &mut dyn Sql, link: LinkId, now: &BTreeSet<i64>) -> Result<()> {
    sql.execute("DELETE FROM visit_tag WHERE link_id = $1", &[link.get().into()]).await?;
    let rows: Vec<_> = now.iter().map(|tag| [Value::Int(link.get()), Value::Int(*tag)]).collect();
    Ok(insert_rows(sql, "INSERT INTO visit_tag (link_id, tag_id)", &rows, "").await?)
}

/// Removes some links of a deleted tag from tables. Returns whether there may be more.
pub(crate) async fn remove_gone_links(sql: &mut dyn Sql, tables: &[&str], tag: i64) -> Result<bool> {
    for table in tables {
        let some = format!("SELECT link_id FROM {table} WHERE tag_id = $1 LIMIT $2");
        // By its key and not its place, which nodes of Citus do not tell.
        let of_some = match sql.dialect() {
            Dialect::Postgres => format!("= ANY(ARRAY({some}))"),
            Dialect::Sqlite => format!("IN ({some})"),
        };
        let remove = format!("DELETE FROM {table} WHERE tag_id = $1 AND link_id {of_some}");
        if sql.execute(&remove, &[tag.into(), GONE_LINKS.into()]).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes some counters of a deleted tag. Returns whether there may be more.
pub(crate) async fn remove_gone_counters(sql: &mut dyn Sql, tag: i64) -> Result<bool> {
    let condition = format!("kind = {} AND subject = $1", Subject::Tag(tag, None).key().kind);
    for table in ["visit_day", "visit_month"] {
        if delete_some(sql, (table, "rowid"), &condition, tag, GONE_COUNTERS).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn days_of(sql: &mut dyn Sql, link: LinkId) -> Result<LinkDays> {
    let query = "SELECT day, part, total, bots, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = 0 AND subject = $1";
    sql.query(query, &[link.get().into()]).await?.iter_mut().map(take_link_day).collect()
}

/// Reads a day of a link from a row that begins with the day and the part.
pub(super) fn take_link_day(row: &mut Row) -> Result<(Day, DomainId, Counters)> {
    let (day, domain) = (Day::from_stored(row.number(0)?), DomainId::from_stored(row.int(1)? - 1));
    Ok((day, domain, take_counters(row, 2)?))
}

/// Adds the counters of a link to those of a tag.
fn add(sums: &mut Sums, tag: i64, link: &LinkDays) {
    for (day, domain, counters) in link {
        sums.add([Subject::Tag(tag, None), Subject::Tag(tag, Some(*domain))], *day, counters);
    }
}
