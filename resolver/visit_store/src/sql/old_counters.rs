//! Removal of counters that are not kept any more.
//!
//! 1. Whole months go: the row of a merged month counts only beside all of its days.
//! 2. The first day that is kept is noted before anything is removed, and statistics begin there.
//!    So a day counts whole or not at all, whatever of it is left, comes late, or was transferred.
//! 3. The totals of links stay. A deletion takes what old days have counted from them too
//!    (`deletion.rs`).

use store::{Dialect, Sql};
use visits::Day;

use super::{delete_some, today};
use crate::{MERGED, Result};

/// The chore whose position is the first day that counts, on Postgres.
const CHORE: &str = "old counters of visits";
/// Rows removed in one step. Most are those of links, which are short.
const STEP: i64 = 2_000;

/// SQL expression for the first day whose counters are kept; 0 if all are.
pub(crate) fn first_kept(dialect: Dialect) -> String {
    match dialect {
        Dialect::Postgres => format!("coalesce((SELECT position FROM chore WHERE name = '{CHORE}'), 0)"),
        Dialect::Sqlite => "(SELECT counts_from FROM visit_upkeep)".to_owned(),
    }
}

/// Returns the number of the first day whose counters are kept; 0 if all are.
pub(crate) async fn read_first_kept(sql: &mut dyn Sql) -> Result<i64> {
    let query = format!("SELECT {}", first_kept(sql.dialect()));
    Ok(sql.number(&query, &[]).await?.unwrap_or(0))
}

pub(crate) async fn counts_from(sql: &mut dyn Sql) -> Result<Option<Day>> {
    let day = i32::try_from(read_first_kept(sql).await?).ok();
    Ok(day.filter(|day| *day > 0).map(Day::from_stored))
}

/// Notes the first day of a month as the first one that is kept, and removes some counters before
/// it. Returns whether there may be more.
///
/// The caller keeps out deletions, and all else that merges or removes counters. Days that are not
/// closed are left to the closing.
pub(crate) async fn remove(sql: &mut dyn Sql, counts_from: Day) -> Result<bool> {
    note(sql, counts_from).await?;
    // The order keeps Postgres from reading the table, of which much was just removed.
    let closed_days = format!("slot = {MERGED} AND day < $1 ORDER BY day");
    for (table, condition, bound) in [
        ("visit_day", closed_days.as_str(), counts_from.get()),
        ("visit_month", "month < $1", counts_from.month().get()),
    ] {
        if delete_some(sql, (table, "rowid"), condition, bound.into(), STEP).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Notes a first day, unless a later one is noted: what was removed does not come back. One that is
/// to come was noted while a clock was ahead, and would hide what is counted until then.
async fn note(sql: &mut dyn Sql, counts_from: Day) -> Result<()> {
    let today = today(sql).await?.get();
    let note = match sql.dialect() {
        Dialect::Postgres => format!(
            "INSERT INTO chore (name, position) VALUES ('{CHORE}', $1)
             ON CONFLICT (name) DO UPDATE SET position = excluded.position
             WHERE chore.position < excluded.position OR chore.position > {today}"
        ),
        Dialect::Sqlite => {
            format!(
                "UPDATE visit_upkeep SET counts_from = $1 WHERE counts_from < $1 OR counts_from > {today}"
            )
        }
    };
    sql.execute(&note, &[counts_from.get().into()]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use codes::LinkId;
    use futures_executor::block_on;
    use rusqlite::Connection;
    use store::sqlite::SqliteSql;
    use visits::{Month, Subject, tally::Counters};

    use super::*;
    use crate::{
        Columns, DayDelta, Days,
        sql::{counters, days},
        sqlite::tests::{memory, number},
    };

    const FROM: Day = Day::from_stored(20_089); // 2025-01-01

    fn subject() -> Subject {
        Subject::Link(LinkId::from_stored(7))
    }

    fn add(connection: &mut Connection, slot: i16, day: Day) {
        let delta = Counters { total: 1, ..Counters::default() };
        let delta = DayDelta { subject: subject().key(), day, delta };
        block_on(days::add(&mut SqliteSql(connection), slot, &[delta])).unwrap();
    }

    /// Removes counters before a day, and returns how many steps had any.
    fn remove_all(connection: &mut Connection, from: Day) -> usize {
        let mut step = || block_on(remove(&mut SqliteSql(connection), from)).unwrap();
        (0..100).take_while(|_| step()).count()
    }

    /// Returns the total by days, by spans and within lists.
    fn totals(connection: &mut Connection) -> [i64; 3] {
        let sql = &mut SqliteSql(connection);
        let days = block_on(counters::days(sql, subject(), Days::ALWAYS, Columns::ALL)).unwrap();
        let range = Days { first: FROM.minus(62), end: Day::from_stored(FROM.get() + 59) };
        let spans = block_on(counters::spans(sql, subject(), range, Columns::ALL)).unwrap();
        let link = LinkId::from_stored(7);
        let listed = block_on(counters::link_totals(sql, &[link], Days::ALWAYS)).unwrap();
        let listed = listed.get(&link).map_or(0, |totals| i64::try_from(totals.total).unwrap());
        let [days, spans] =
            [days, spans].map(|counted| counted.iter().map(|one| one.counters.total).sum::<i64>());
        [days, spans, listed]
    }

    #[test]
    fn old_months_go_and_what_comes_late_does_not_count() {
        let mut connection = memory();
        assert_eq!(FROM, Month::from_stored(2_025 * 12).first_day());
        for day in [FROM.minus(32), FROM.minus(1), FROM, FROM.next()] {
            add(&mut connection, MERGED, day);
        }
        for month in [FROM.minus(1).month(), FROM.month()] {
            let days = if month == FROM.month() { 2 } else { 1 };
            let key = subject().key();
            let merged = format!(
                "INSERT INTO visit_month VALUES ({}, {}, {}, {}, {days}, {days}, 0, x'', x'', x'', x'')",
                key.kind,
                key.subject,
                key.part,
                month.get()
            );
            connection.execute(&merged, []).unwrap();
        }
        assert_eq!(totals(&mut connection), [4, 4, 4]);
        assert_eq!(remove_all(&mut connection, FROM), 2, "the days, and then the month");
        assert_eq!(number(&connection, "SELECT min(month) FROM visit_month"), i64::from(FROM.month().get()));
        assert_eq!(number(&connection, "SELECT count(*) FROM visit_day"), 2);
        add(&mut connection, 3, FROM.minus(1));
        assert_eq!(totals(&mut connection), [2, 2, 2]);
        assert_eq!(remove_all(&mut connection, FROM), 0, "it is not closed");
        // A process that keeps more brings nothing back, unless the other one's clock was ahead.
        assert_eq!(remove_all(&mut connection, FROM.minus(31)), 0);
        assert_eq!(totals(&mut connection), [2, 2, 2]);
        connection.execute("UPDATE visit_upkeep SET counts_from = 100000", []).unwrap();
        assert_eq!(totals(&mut connection), [0, 0, 0]);
        assert_eq!(remove_all(&mut connection, FROM), 0);
        assert_eq!(totals(&mut connection), [2, 2, 2]);
    }

    #[test]
    fn many_days_go_in_steps_along_an_index() {
        let mut connection = memory();
        let many = format!(
            "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {})
             INSERT INTO visit_day SELECT 0, number, 1, {}, {MERGED}, 1, 0, 1, 0, x'', x'', x'', x'' FROM numbers",
            2 * STEP + 1,
            FROM.get() - 1
        );
        connection.execute(&many, []).unwrap();
        assert_eq!(remove_all(&mut connection, FROM), 3);
        let plan = format!(
            "EXPLAIN QUERY PLAN SELECT rowid FROM visit_day WHERE slot = {MERGED} AND day < 7 ORDER BY day LIMIT 9"
        );
        let plan: String = connection.query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("visit_day_closed"), "{plan}");
    }
}
