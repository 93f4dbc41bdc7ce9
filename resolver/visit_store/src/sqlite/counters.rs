//! Reads of counters.

use std::{collections::HashMap, ops::Range};

use codes::LinkId;
use rusqlite::{Connection, Row, params};
use store::VisitTotals;
use visits::{Day, Month, Subject, SubjectKey};

use crate::{Columns, DayCounters, Days, VisitStoreError, link_visits::link_total};

/// Returns the counters of a subject by day.
pub(super) fn days(
    connection: &Connection,
    subject: Subject,
    days: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>, VisitStoreError> {
    let query = format!(
        "SELECT day, total, bots, {} FROM visit_day WHERE {} AND day >= ?1 AND day < ?2 ORDER BY day",
        expressions(columns),
        of_subject(subject)
    );
    let mut query = connection.prepare(&query)?;
    let mut rows = query.query(params![days.first.get(), days.end.get()])?;
    let mut all: Vec<DayCounters> = Vec::new();
    while let Some(row) = rows.next()? {
        let day: i32 = row.get(0)?;
        let next = read(row, day..day + 1)?;
        // The columns of several slots are joined: they are chunks in any case.
        match all.last_mut().filter(|last| last.days == next.days) {
            Some(last) => last.append(&next),
            None => all.push(next),
        }
    }
    Ok(all)
}

/// Returns the counters of a subject with a value for each month whose merged row is current, and
/// one for each other day.
///
/// A month's row is current if the versions of its days add up to its own. Days only ever gain
/// versions, so no other set of changes has the same sum; days are removed only together with their
/// month's row.
pub(super) fn spans(
    connection: &Connection,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>, VisitStoreError> {
    let mut all = Vec::new();
    let mut from = range.first;
    for month in months(connection, subject, range, columns)? {
        let first = Day::from_stored(month.days.start);
        all.append(&mut days(connection, subject, Days { first: from, end: first }, columns)?);
        from = Day::from_stored(month.days.end);
        all.push(month);
    }
    all.append(&mut days(connection, subject, Days { first: from, end: range.end }, columns)?);
    Ok(all)
}

/// Returns the current rows of months that lie within a range.
fn months(
    connection: &Connection,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>, VisitStoreError> {
    let is_whole = range.first == range.first.month().first_day();
    let first = if is_whole { range.first.month() } else { range.first.month().next() };
    let end = range.end.month();
    if first >= end {
        return Ok(Vec::new());
    }
    // A link that is visited on several domains has a month in each part: all of them, or none.
    let query = format!(
        "SELECT month, total, bots, {}, version FROM visit_month WHERE {} AND month >= ?1 AND month < ?2 ORDER BY month",
        expressions(columns),
        of_subject(subject)
    );
    let mut query = connection.prepare(&query)?;
    let mut rows = query.query(params![first.get(), end.get()])?;
    let mut all: Vec<(DayCounters, i64)> = Vec::new();
    while let Some(row) = rows.next()? {
        let month = Month::from_stored(row.get(0)?);
        let next = read(row, month.first_day().get()..month.next().first_day().get())?;
        let version: i64 = row.get(7)?;
        match all.last_mut().filter(|(last, _)| last.days == next.days) {
            Some((last, versions)) => {
                last.append(&next);
                *versions += version;
            }
            None => all.push((next, version)),
        }
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let versions = versions(connection, subject, first.first_day()..end.first_day())?;
    let is_current = |(month, version): &(DayCounters, i64)| {
        let days = versions.iter().filter(|(day, _)| month.days.contains(day));
        days.map(|(_, version)| version).sum::<i64>() == *version
    };
    Ok(all.into_iter().filter(is_current).map(|(month, _)| month).collect())
}

/// Returns the versions of days.
fn versions(
    connection: &Connection,
    subject: Subject,
    days: Range<Day>,
) -> Result<Vec<(i32, i64)>, VisitStoreError> {
    let query = format!(
        "SELECT day, version FROM visit_day WHERE {} AND day >= ?1 AND day < ?2",
        of_subject(subject)
    );
    let mut query = connection.prepare(&query)?;
    let rows =
        query.query_map(params![days.start.get(), days.end.get()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns how often links were visited within days.
pub(super) fn link_totals(
    connection: &Connection,
    links: &[LinkId],
    days: Days,
) -> Result<HashMap<LinkId, VisitTotals>, VisitStoreError> {
    let query = "SELECT subject, sum(total), sum(bots) FROM visit_day
                 WHERE kind = 0 AND subject IN (SELECT value FROM json_each(?1)) AND day >= ?2 AND day < ?3
                 GROUP BY subject";
    let ids: Vec<String> = links.iter().map(|link| link.get().to_string()).collect();
    let ids = format!("[{}]", ids.join(","));
    let mut query = connection.prepare_cached(query)?;
    let rows = query.query_map(params![ids, days.first.get(), days.end.get()], |row| {
        Ok(link_total(row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// SQL condition for a subject. A link has counters in several parts, one for each domain that it
/// was visited on.
fn of_subject(subject: Subject) -> String {
    let SubjectKey { kind, subject: number, part } = subject.key();
    let of_subject = format!("kind = {kind} AND subject = {number}");
    match subject {
        Subject::Link(_) => of_subject,
        Subject::Tag(..) | Subject::All(_) | Subject::Orphans(..) => {
            format!("{of_subject} AND part = {part}")
        }
    }
}

/// SQL expressions of the byte columns, empty for those that were not asked for.
fn expressions(columns: Columns) -> String {
    let column = |name: &'static str, is_wanted: bool| if is_wanted { name } else { "x''" };
    [
        column("quarters", columns.quarters),
        column("dimensions", columns.dimensions),
        column("visitors", columns.visitors),
        column("addresses", columns.addresses),
    ]
    .join(", ")
}

fn read(row: &Row<'_>, days: Range<i32>) -> Result<DayCounters, rusqlite::Error> {
    Ok(DayCounters {
        days,
        total: row.get(1)?,
        bots: row.get(2)?,
        quarters: row.get(3)?,
        dimensions: row.get(4)?,
        visitors: row.get(5)?,
        addresses: row.get(6)?,
    })
}
