//! Reads of counters.

use std::{collections::HashMap, ops::Range};

use codes::LinkId;
use store::{Sql, Value, VisitTotals};
use visits::{Day, Month, Subject, SubjectKey};

use super::{literal, old_counters::first_kept, take_counters};
use crate::{Columns, DayCounters, Days, Result};

pub(crate) async fn days(
    sql: &mut dyn Sql,
    subject: Subject,
    days: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>> {
    let (condition, values) = within_days(sql, subject, days.first.get()..days.end.get());
    let query = format!(
        "SELECT day, total, bots, {} FROM visit_day WHERE {condition} ORDER BY day, slot, part",
        expressions(sql, columns)
    );
    let mut all: Vec<DayCounters> = Vec::new();
    for mut row in sql.query(&query, &values).await? {
        let day: i32 = row.number(0)?;
        let next = DayCounters { days: day..day + 1, counters: take_counters(&mut row, 1)? };
        // The columns of several slots are joined: they are chunks in any case.
        match all.last_mut().filter(|last| last.days == next.days) {
            Some(last) => last.counters.append(&next.counters),
            None => all.push(next),
        }
    }
    Ok(all)
}

/// Returns the counters of a subject with a value for each month whose merged row is current, and
/// one for each other day.
///
/// A month's row is current if the versions of its days add up to its own. Each change adds to that
/// sum, and the closing of a day keeps it, so no other set of changes has the same one. Days are
/// removed only together with their month's row, or do not count any more.
pub(crate) async fn spans(
    sql: &mut dyn Sql,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>> {
    let mut all = Vec::new();
    let mut from = range.first;
    for month in months(sql, subject, range, columns).await? {
        let first = Day::from_stored(month.days.start);
        all.append(&mut days(sql, subject, Days { first: from, end: first }, columns).await?);
        from = Day::from_stored(month.days.end);
        all.push(month);
    }
    all.append(&mut days(sql, subject, Days { first: from, end: range.end }, columns).await?);
    Ok(all)
}

/// Returns the current rows of months that lie within a range.
async fn months(
    sql: &mut dyn Sql,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>> {
    let is_whole = range.first == range.first.month().first_day();
    let first = if is_whole { range.first.month() } else { range.first.month().next() };
    let end = range.end.month();
    if first >= end {
        return Ok(Vec::new());
    }
    let (condition, values) = within(subject, "month", first.get()..end.get());
    let query = format!(
        "SELECT month, total, bots, {}, version FROM visit_month WHERE {condition} ORDER BY month",
        expressions(sql, columns)
    );
    // A link that is visited on several domains has a month in each part: all of them, or none.
    let mut all: Vec<(DayCounters, i64)> = Vec::new();
    for mut row in sql.query(&query, &values).await? {
        let month = Month::from_stored(row.number(0)?);
        let days = month.first_day().get()..month.next().first_day().get();
        let next = DayCounters { days, counters: take_counters(&mut row, 1)? };
        let version = row.int(7)?;
        match all.last_mut().filter(|(last, _)| last.days == next.days) {
            Some((last, versions)) => {
                last.counters.append(&next.counters);
                *versions += version;
            }
            None => all.push((next, version)),
        }
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let versions = versions(sql, subject, first.first_day().get()..end.first_day().get()).await?;
    let is_current = |(month, version): &(DayCounters, i64)| {
        let days = versions.iter().filter(|(day, _)| month.days.contains(day));
        days.map(|(_, version)| version).sum::<i64>() == *version
    };
    Ok(all.into_iter().filter(is_current).map(|(month, _)| month).collect())
}

async fn versions(sql: &mut dyn Sql, subject: Subject, days: Range<i32>) -> Result<Vec<(i32, i64)>> {
    let (condition, values) = within_days(sql, subject, days);
    let rows = sql.query(&format!("SELECT day, version FROM visit_day WHERE {condition}"), &values).await?;
    rows.iter().map(|row| Ok((row.number(0)?, row.int(1)?))).collect()
}

pub(crate) async fn link_totals(
    sql: &mut dyn Sql,
    links: &[LinkId],
    days: Days,
) -> Result<HashMap<LinkId, VisitTotals>> {
    let query = format!(
        "SELECT subject, CAST(sum(total) AS bigint), CAST(sum(bots) AS bigint) FROM visit_day
         WHERE kind = 0 AND {} AND day >= $2 AND day < $3 AND day >= {} GROUP BY subject",
        sql.dialect().among_many("subject", "$1"),
        first_kept(sql.dialect())
    );
    let links = Value::numbers(links.iter().map(|link| link.get()));
    let rows = sql.query(&query, &[links, days.first.get().into(), days.end.get().into()]).await?;
    let totals = rows.iter().map(|row| {
        let [total, bots] = [row.int(1)?, row.int(2)?].map(|sum| u64::try_from(sum).unwrap_or(0));
        Ok((LinkId::from_stored(row.int(0)?), VisitTotals { total, bots, last: None }))
    });
    totals.collect()
}

/// SQL condition for a subject and a range of a column, with its parameters. A link has counters in
/// several parts, one for each domain that it was visited on.
fn within(subject: Subject, column: &str, range: Range<i32>) -> (String, Vec<Value>) {
    let SubjectKey { kind, subject: number, part } = subject.key();
    let condition = format!("kind = $1 AND subject = $2 AND {column} >= $3 AND {column} < $4");
    let mut values = vec![kind.into(), number.into(), range.start.into(), range.end.into()];
    if matches!(subject, Subject::Link(_)) {
        return (condition, values);
    }
    values.push(part.into());
    (format!("{condition} AND part = $5"), values)
}

/// SQL condition for a subject and a range of days, without those that are not kept any more.
fn within_days(sql: &mut dyn Sql, subject: Subject, range: Range<i32>) -> (String, Vec<Value>) {
    let (condition, values) = within(subject, "day", range);
    (format!("{condition} AND day >= {}", first_kept(sql.dialect())), values)
}

/// SQL expressions of the byte columns, empty for those that were not asked for.
fn expressions(sql: &mut dyn Sql, columns: Columns) -> String {
    let none = literal(sql.dialect(), &[]);
    let column = |name: &'static str, is_wanted: bool| if is_wanted { name } else { none.as_str() };
    [
        column("quarters", columns.quarters),
        column("dimensions", columns.dimensions),
        column("visitors", columns.visitors),
        column("addresses", columns.addresses),
    ]
    .join(", ")
}
