//! Closing of days: the counters that all slots have of a subject on a past day become one row,
//! with one chunk in each column.
//!
//! 1. Most visits of a quiet link are chunks of their own, so a closed row takes a fraction of the
//!    space, and a read of many days a fraction of the time.
//! 2. What is read stays the same, and so does the sum of versions that months are compared with.
//! 3. Visits that arrive late begin a new row of their slot, which is closed in turn.
//! 4. No step waits for a batch: rows that one is changing stay open. A late batch may wait for one
//!    step.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use store::{Dialect, Sql, Value};
use visits::{Day, Slot, SubjectKey, tally::Counters};

use super::{
    days::{self, Addition},
    take_counters, today,
};
use crate::{Remaining, Result};

/// Days that most visits arrive on: today and yesterday.
pub(crate) const OPEN: i32 = 2;
/// Rows of slots that a step looks for.
const STEP: usize = 500;
/// Bytes of the rows of some days from which a step takes no more days.
const STEP_BYTES: i64 = 4 << 20;

type Key = (SubjectKey, Day);

/// Closes some days, into rows of a slot below 0.
///
/// The caller keeps deletions out: they would miss rows that are replaced meanwhile.
pub(crate) async fn close(sql: &mut dyn Sql, slot: i16) -> Result<Remaining> {
    let keys = open(sql).await?;
    if keys.is_empty() {
        return Ok(Remaining::Nothing);
    }
    let Taken { sums, has_slots } = take(sql, &keys, slot).await?;
    let closed: Vec<(Key, i64, Counters)> =
        sums.into_iter().map(|(key, (version, sum))| (key, version, days::merged(key, sum))).collect();
    let additions: Vec<Addition<'_>> = closed
        .iter()
        .map(|((subject, day), version, counters)| Addition {
            subject: *subject,
            day: *day,
            version: *version,
            appended: 0,
            counters,
        })
        .collect();
    days::add_all(sql, slot, &additions).await?;
    Ok(if has_slots { Remaining::Something } else { Remaining::Held })
}

/// Returns the time since the beginning of the oldest day that is not closed; zero if all are.
pub(crate) async fn oldest_open(sql: &mut dyn Sql) -> Result<Duration> {
    let now = sql.dialect().now_millis();
    // Other slots have changes of days that are closed.
    let last = Slot::COUNT - 1;
    let age = format!(
        "SELECT {now} - 86400000 * CAST(min(day) AS bigint) FROM visit_day WHERE slot >= 0 AND slot <= {last}"
    );
    let age = sql.number(&age, &[]).await?.unwrap_or(0);
    Ok(Duration::from_millis(u64::try_from(age).unwrap_or(0)))
}

/// Returns the keys of some past days that have rows of slots: the oldest ones, as many as may be
/// held in memory.
async fn open(sql: &mut dyn Sql) -> Result<BTreeSet<Key>> {
    let past = today(sql).await?.minus(OPEN);
    let query = format!(
        "SELECT kind, subject, part, day,
                (SELECT CAST(sum(octet_length(quarters) + octet_length(dimensions)
                                 + octet_length(visitors) + octet_length(addresses)) AS bigint)
                 FROM visit_day AS own WHERE own.kind = slots.kind AND own.subject = slots.subject
                   AND own.part = slots.part AND own.day = slots.day)
         FROM visit_day AS slots WHERE slot >= 0 AND day <= {}
         ORDER BY day LIMIT {STEP}",
        past.get()
    );
    let (mut keys, mut bytes) = (BTreeSet::new(), 0);
    for row in sql.query(&query, &[]).await? {
        if bytes >= STEP_BYTES {
            break;
        }
        let subject = SubjectKey { kind: row.number(0)?, subject: row.int(1)?, part: row.int(2)? };
        if keys.insert((subject, Day::from_stored(row.number(3)?))) {
            bytes += row.int(4)?;
        }
    }
    Ok(keys)
}

/// Rows that were removed.
struct Taken {
    /// The sums of their versions and counters.
    sums: BTreeMap<Key, (i64, Counters)>,
    /// Whether one of them was open.
    has_slots: bool,
}

/// Removes the rows of these keys, but none that leaves unless the sums do.
async fn take(sql: &mut dyn Sql, keys: &BTreeSet<Key>, slot: i16) -> Result<Taken> {
    let places: Vec<String> = (0..keys.len())
        .map(|key| format!("(${}, ${}, ${}, ${})", 4 * key + 1, 4 * key + 2, 4 * key + 3, 4 * key + 4))
        .collect();
    let of_keys = format!("(kind, subject, part, day) IN (VALUES {}) AND slot >= {slot}", places.join(", "));
    let rows = match sql.dialect() {
        Dialect::Postgres => {
            format!("ctid = ANY(ARRAY(SELECT ctid FROM visit_day WHERE {of_keys} FOR UPDATE SKIP LOCKED))")
        }
        Dialect::Sqlite => of_keys,
    };
    let remove = format!(
        "DELETE FROM visit_day WHERE {rows}
         RETURNING kind, subject, part, day, slot, version, total, bots, quarters, dimensions, visitors, addresses"
    );
    let values = keys.iter().flat_map(|(SubjectKey { kind, subject, part }, day)| {
        [i64::from(*kind), *subject, *part, day.get().into()].map(Value::Int)
    });
    let mut taken = Taken { sums: BTreeMap::new(), has_slots: false };
    for mut row in sql.query(&remove, &values.collect::<Vec<_>>()).await? {
        let subject = SubjectKey { kind: row.number(0)?, subject: row.int(1)?, part: row.int(2)? };
        let (version, sum) = taken.sums.entry((subject, Day::from_stored(row.number(3)?))).or_default();
        taken.has_slots |= row.number::<i16>(4)? >= 0;
        *version += row.int(5)?;
        sum.append(&take_counters(&mut row, 6)?);
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;
    use rusqlite::Connection;
    use store::sqlite::SqliteSql;
    use visits::{
        Subject,
        tally::{Counted, Dimension, Quarter, Tally},
    };

    use super::*;
    use crate::{
        Columns, DayCounters, DayDelta, Days, MERGED,
        sql::counters,
        sqlite::tests::{memory, number},
    };

    const PAST: i32 = 20_000;

    fn visit(number: u64) -> Counters {
        let mut tally = Tally::default();
        tally.add(&Counted {
            quarter: Quarter::of(i64::try_from(number % 50).unwrap() * visits::QUARTER),
            is_bot: number.is_multiple_of(5),
            is_listed: true,
            is_redirected: true,
            visitor: Some(number % 30),
            address: Some(number % 20),
            values: Dimension::ALL.map(|dimension| if dimension == Dimension::Os { "iOS" } else { "" }),
        });
        tally.delta()
    }

    fn add(connection: &mut Connection, slot: i16, subject: Subject, day: i32, delta: Counters) {
        let delta = DayDelta { subject: subject.key(), day: Day::from_stored(day), delta };
        block_on(days::add(&mut SqliteSql(connection), slot, &[delta])).unwrap();
    }

    /// Closes days, and returns how many steps had any.
    fn close_all(connection: &mut Connection) -> usize {
        let mut step = || block_on(close(&mut SqliteSql(connection), MERGED)).unwrap();
        (0..100).take_while(|_| step() == Remaining::Something).count()
    }

    fn read(connection: &mut Connection, subject: Subject) -> Vec<DayCounters> {
        let days = Days { first: Day::from_stored(0), end: Day::from_stored(100_000) };
        block_on(counters::days(&mut SqliteSql(connection), subject, days, Columns::ALL)).unwrap()
    }

    #[test]
    fn a_closed_day_is_one_short_row_that_reads_the_same() {
        let mut connection = memory();
        let today = block_on(today(&mut SqliteSql(&mut connection))).unwrap().get();
        let (all, domain) = (Subject::All(None), Subject::All(Some(links::DomainId::from_stored(3))));
        for number in 0..200 {
            let slot = i16::try_from(number % 4).unwrap() - 1;
            for (subject, day) in [(all, PAST), (all, today - 2), (all, today - 1), (domain, PAST)] {
                add(&mut connection, slot, subject, day, visit(number));
            }
        }
        let sizes = format!(
            "SELECT sum(octet_length(quarters) + octet_length(dimensions)) FROM visit_day WHERE day = {PAST}"
        );
        let versions = "SELECT sum(version) FROM visit_day";
        let before = [read(&mut connection, all), read(&mut connection, domain)].concat();
        let (bytes, changes) = (number(&connection, &sizes), number(&connection, versions));
        assert_eq!(close_all(&mut connection), 1);
        let after = [read(&mut connection, all), read(&mut connection, domain)].concat();
        assert_eq!(after.len(), before.len());
        for (after, before) in after.iter().zip(&before) {
            let numbers = |day: &DayCounters| (day.days.clone(), day.counters.total, day.counters.bots);
            assert_eq!(numbers(after), numbers(before));
            let [after, before] = [after, before].map(|day| Tally::from_chunks(&day.counters).unwrap());
            assert_eq!(after, before);
        }
        assert_eq!(number(&connection, versions), changes, "months are compared with their sum");
        assert!(number(&connection, &sizes) < bytes / 10);
        let rows = |day: i32| format!("SELECT count(*) FROM visit_day WHERE day = {day}");
        let rows = [PAST, today - 2, today - 1].map(|day| number(&connection, &rows(day)));
        assert_eq!(rows, [2, 1, 4], "yesterday is open");
        // A late visit, and one that is taken away.
        add(&mut connection, 2, all, PAST, visit(7));
        add(&mut connection, MERGED, all, PAST, visit(8).negated().unwrap());
        close_all(&mut connection);
        let day = read(&mut connection, all).remove(0).counters;
        assert_eq!(day.total, 200);
        assert_eq!(number(&connection, "SELECT count(*) FROM visit_day WHERE slot >= 0 AND day = 20000"), 0);
    }

    #[test]
    fn many_days_and_long_ones_are_closed_in_steps() {
        let mut connection = memory();
        let links = i64::try_from(2 * STEP).unwrap() + 10;
        for link in 0..links {
            let subject = Subject::Link(codes::LinkId::from_stored(link));
            add(&mut connection, 0, subject, PAST, visit(1));
        }
        assert_eq!(close_all(&mut connection), 3);
        let rows = "SELECT count(*) FROM visit_day WHERE slot = -1 AND total = 1";
        assert_eq!(number(&connection, rows), links);
        for day in 0..4 {
            add(&mut connection, 0, Subject::All(None), PAST + day, visit(1));
        }
        let lengthen = "UPDATE visit_day SET dimensions = zeroblob(3 << 20) WHERE slot = 0";
        connection.execute(lengthen, []).unwrap();
        assert_eq!(close_all(&mut connection), 2, "two days have as many bytes as a step takes");
    }

    #[test]
    fn a_damaged_row_keeps_its_bytes_and_does_not_keep_others_open() {
        let mut connection = memory();
        let damaged = Counters { dimensions: vec![0xff, 0xfe], ..visit(1) };
        add(&mut connection, 0, Subject::All(None), PAST, damaged.clone());
        add(&mut connection, 0, Subject::All(None), PAST + 1, visit(2));
        assert_eq!(close_all(&mut connection), 1);
        let days = read(&mut connection, Subject::All(None));
        assert_eq!(days[0].counters, damaged);
        // It goes on to count, beyond the bytes at which a row is merged.
        let long = Counters { quarters: visit(3).quarters.repeat(20_000), ..visit(3) };
        add(&mut connection, MERGED, Subject::All(None), PAST, long);
        assert_eq!(read(&mut connection, Subject::All(None))[0].counters.total, 2);
        assert_eq!(number(&connection, "SELECT count(*) FROM visit_day WHERE slot >= 0"), 0);
    }
}
