//! Changes of counters by day.

use rusqlite::{Connection, params};

use crate::{
    DayDelta, Result,
    sql::days::{APPENDED_MAX, DayKey},
};

/// SQL statement that adds to a row of counters. `||` joins the bytes of two blobs as they are and
/// calls the result a text, which the cast undoes.
const ADD: &str =
    "INSERT INTO visit_day AS old (kind, subject, part, day, slot, total, bots, version, appended,
                               quarters, dimensions, visitors, addresses)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10, ?11, ?12)
     ON CONFLICT (kind, subject, part, day, slot) DO UPDATE SET
         total = old.total + excluded.total, bots = old.bots + excluded.bots,
         version = old.version + 1, appended = old.appended + excluded.appended,
         quarters = CAST(old.quarters || excluded.quarters AS BLOB),
         dimensions = CAST(old.dimensions || excluded.dimensions AS BLOB),
         visitors = CAST(old.visitors || excluded.visitors AS BLOB),
         addresses = CAST(old.addresses || excluded.addresses AS BLOB)
     RETURNING appended";

/// Adds to counters, in rows of a slot, and returns the rows that have grown too long.
pub(super) fn add(transaction: &Connection, slot: i16, days: &[DayDelta]) -> Result<Vec<DayKey>> {
    let mut long = Vec::new();
    let mut add = transaction.prepare_cached(ADD)?;
    for DayDelta { subject, day, delta } in days {
        let size = i64::try_from(delta.bytes()).unwrap_or(i64::MAX);
        let values = params![
            subject.kind,
            subject.subject,
            subject.part,
            day.get(),
            slot,
            delta.total,
            delta.bots,
            size,
            delta.quarters,
            delta.dimensions,
            delta.visitors,
            delta.addresses
        ];
        let appended: i32 = add.query_row(values, |row| row.get(0))?;
        if appended > APPENDED_MAX {
            long.push(DayKey { subject: *subject, day: *day, slot });
        }
    }
    Ok(long)
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;
    use proptest::prelude::*;
    use store::sqlite::SqliteSql;
    use visits::{
        Day, QUARTER, Subject,
        tally::{Counted, Counters, Dimension, Quarter, Tally, Values},
    };

    use super::*;
    use crate::{
        Columns, Days,
        sql::{VisitSql as _, counters},
        sqlite::tests::memory,
    };

    const ALL: Columns = Columns { quarters: true, dimensions: true, visitors: true, addresses: true };

    fn delta(chunks: [Vec<u8>; 4]) -> DayDelta {
        let [quarters, dimensions, visitors, addresses] = chunks;
        let delta = Counters { total: 1, bots: 0, quarters, dimensions, visitors, addresses };
        DayDelta { subject: Subject::All(None).key(), day: Day::from_stored(20_000), delta }
    }

    fn add_to(connection: &mut Connection, delta: DayDelta) {
        block_on(SqliteSql(connection).add_days(0, &[delta])).unwrap();
    }

    fn stored(connection: &mut Connection) -> Counters {
        let days = Days { first: Day::from_stored(20_000), end: Day::from_stored(20_001) };
        let sql = &mut SqliteSql(connection);
        block_on(counters::days(sql, Subject::All(None), days, ALL)).unwrap().remove(0).counters
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_of_any_values_are_appended_as_they_are(
            parts in prop::collection::vec(prop::array::uniform4(prop::collection::vec(
                prop_oneof![Just(0_u8), Just(0xff), Just(0xc3), any::<u8>()], 0..40)), 1..6),
        ) {
            let mut connection = memory();
            let mut expected: [Vec<u8>; 4] = Default::default();
            for part in &parts {
                add_to(&mut connection, delta(part.clone()));
                expected.iter_mut().zip(part).for_each(|(all, bytes)| all.extend(bytes));
            }
            let found = stored(&mut connection);
            prop_assert_eq!([found.quarters, found.dimensions, found.visitors, found.addresses], expected);
            prop_assert_eq!(found.total, i64::try_from(parts.len()).unwrap());
        }
    }

    #[test]
    fn a_row_that_grows_long_is_merged_and_reads_the_same() {
        let mut connection = memory();
        let mut all = Counters::default();
        for batch in 0..40_u64 {
            let mut tally = Tally::default();
            for visit in 0..300 {
                let key = batch * 300 + visit;
                tally.add(&Counted {
                    quarter: Quarter::of(3 * QUARTER),
                    is_bot: false,
                    is_listed: true,
                    is_redirected: true,
                    visitor: Some(key),
                    address: Some(key % 40),
                    values: Values::of(|dimension| match dimension {
                        Dimension::Referrer => "example.com",
                        Dimension::Outcome => "redirected",
                        _ => "",
                    }),
                });
            }
            let delta = DayDelta { delta: tally.delta(), ..delta(Default::default()) };
            all.append(&delta.delta);
            add_to(&mut connection, delta);
        }
        let found = stored(&mut connection);
        assert_eq!(Tally::from_chunks(&found), Tally::from_chunks(&all));
        // Each visitor takes four bytes until the row is merged.
        assert!(found.visitors.len() < 40 * 300 * 4, "{} bytes", found.visitors.len());
        assert_eq!(found.total, 12_000);
    }
}
