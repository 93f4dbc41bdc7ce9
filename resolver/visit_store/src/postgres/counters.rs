//! Reads of counters.

use std::collections::HashMap;

use codes::LinkId;
use store::VisitTotals;
use tokio_postgres::{
    Client, Row,
    types::{ToSql, Type},
};
use visits::{Day, Month, Subject, SubjectKey};

use crate::{Columns, DayCounters, Days, VisitStoreError, link_visits::link_total};

/// Returns the counters of a subject by day.
pub(super) async fn days(
    client: &Client,
    subject: Subject,
    days: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>, VisitStoreError> {
    let query = format!(
        "SELECT day, total, bots, {} FROM visit_day WHERE {} AND day >= $3 AND day < $4 ORDER BY day, slot, part",
        expressions(columns),
        of_subject(subject),
    );
    let key = subject.key();
    let rows = client.query_typed(&query, &parameters(&key, &(days.first.get(), days.end.get()))).await?;
    let mut all: Vec<DayCounters> = Vec::new();
    for row in rows {
        let day: i32 = row.get(0);
        let next = read(&row, day..day + 1);
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
pub(super) async fn spans(
    client: &Client,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>, VisitStoreError> {
    let months = months(client, subject, range, columns).await?;
    let mut all = Vec::new();
    let mut from = range.first;
    for month in months {
        let first = Day::from_stored(month.days.start);
        all.append(&mut days(client, subject, Days { first: from, end: first }, columns).await?);
        from = Day::from_stored(month.days.end);
        all.push(month);
    }
    all.append(&mut days(client, subject, Days { first: from, end: range.end }, columns).await?);
    Ok(all)
}

/// Returns the current rows of months that lie within a range.
async fn months(
    client: &Client,
    subject: Subject,
    range: Days,
    columns: Columns,
) -> Result<Vec<DayCounters>, VisitStoreError> {
    let first = if range.first == range.first.month().first_day() {
        range.first.month()
    } else {
        range.first.month().next()
    };
    let end = range.end.month();
    if first >= end {
        return Ok(Vec::new());
    }
    let key = subject.key();
    let query = format!(
        "SELECT month, total, bots, {}, version FROM visit_month WHERE {} AND month >= $3 AND month < $4 ORDER BY month",
        expressions(columns),
        of_subject(subject),
    );
    let rows = client.query_typed(&query, &parameters(&key, &(first.get(), end.get()))).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let query = format!(
        "SELECT day, version FROM visit_day WHERE {} AND day >= $3 AND day < $4",
        of_subject(subject)
    );
    let bounds = (first.first_day().get(), end.first_day().get());
    let versions = client.query_typed(&query, &parameters(&key, &bounds)).await?;
    let versions: Vec<(i32, i64)> = versions.iter().map(|row| (row.get(0), row.get(1))).collect();
    let current = |row: &Row| {
        let month = Month::from_stored(row.get(0));
        let days = month.first_day().get()..month.next().first_day().get();
        let sum: i64 =
            versions.iter().filter(|(day, _)| days.contains(day)).map(|(_, version)| version).sum();
        (sum == row.get::<_, i64>(7)).then(|| read(row, days))
    };
    Ok(rows.iter().filter_map(current).collect())
}

/// Returns how often links were visited within days.
pub(super) async fn link_totals(
    client: &Client,
    links: &[LinkId],
    days: Days,
) -> Result<HashMap<LinkId, VisitTotals>, VisitStoreError> {
    let query = "SELECT subject, sum(total)::bigint, sum(bots)::bigint FROM visit_day
                 WHERE kind = 0 AND subject = ANY($1) AND day >= $2 AND day < $3 GROUP BY subject";
    let ids: Vec<i64> = links.iter().map(|link| link.get()).collect();
    let (first, end) = (days.first.get(), days.end.get());
    let parameters: [Parameter<'_>; 3] = [(&ids, Type::INT8_ARRAY), (&first, Type::INT4), (&end, Type::INT4)];
    let rows = client.query_typed(query, &parameters).await?;
    Ok(rows.iter().map(|row| link_total(row.get(0), row.get(1), row.get(2))).collect())
}

/// SQL condition for a subject. A link has counters in several parts, one for each domain that it
/// was visited on.
fn of_subject(subject: Subject) -> &'static str {
    match subject {
        Subject::Link(_) => "kind = $1 AND subject = $2",
        Subject::Tag(..) | Subject::All(_) | Subject::Orphans(..) => {
            "kind = $1 AND subject = $2 AND part = $5"
        }
    }
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Returns the parameters of [`of_subject`] and of a range. `$5` is typed in any case: a statement
/// may leave a parameter out.
fn parameters<'a>(key: &'a SubjectKey, range: &'a (i32, i32)) -> Vec<Parameter<'a>> {
    let mut parameters: Vec<Parameter<'a>> = vec![
        (&key.kind, Type::INT2),
        (&key.subject, Type::INT8),
        (&range.0, Type::INT4),
        (&range.1, Type::INT4),
    ];
    if key.kind != 0 {
        parameters.push((&key.part, Type::INT8));
    }
    parameters
}

/// SQL expressions of the byte columns, empty for those that were not asked for.
fn expressions(columns: Columns) -> String {
    let column = |name: &'static str, is_wanted: bool| if is_wanted { name } else { "''::bytea" };
    [
        column("quarters", columns.quarters),
        column("dimensions", columns.dimensions),
        column("visitors", columns.visitors),
        column("addresses", columns.addresses),
    ]
    .join(", ")
}

fn read(row: &Row, days: std::ops::Range<i32>) -> DayCounters {
    DayCounters {
        days,
        total: row.get(1),
        bots: row.get(2),
        quarters: row.get(3),
        dimensions: row.get(4),
        visitors: row.get(5),
        addresses: row.get(6),
    }
}
