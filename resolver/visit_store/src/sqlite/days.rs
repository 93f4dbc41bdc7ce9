//! Changes of counters by day.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use visits::tally::Delta;

use crate::{DayDelta, VisitStoreError, columns::ByteColumns};

/// Appended bytes at which the columns of a row are merged into one chunk each.
const APPENDED_MAX: i64 = 32 * 1024;

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
     RETURNING appended, rowid";

/// Adds to counters, in rows of a slot.
pub(super) fn add(transaction: &Connection, slot: i16, days: &[DayDelta]) -> Result<(), VisitStoreError> {
    let mut long = Vec::new();
    {
        let mut add = transaction.prepare_cached(ADD)?;
        for DayDelta { subject, day, delta } in days {
            let size = i64::try_from(size(delta)).unwrap_or(i64::MAX);
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
            let (appended, row): (i64, i64) = add.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            if appended > APPENDED_MAX {
                long.push(row);
            }
        }
    }
    long.into_iter().try_for_each(|row| compact(transaction, row))
}

/// Returns the bytes that a delta appends.
fn size(delta: &Delta) -> usize {
    [&delta.quarters, &delta.dimensions, &delta.visitors, &delta.addresses].map(Vec::len).iter().sum()
}

/// Merges the chunks of a row that has grown long. What is read from it stays the same.
fn compact(transaction: &Connection, row: i64) -> Result<(), VisitStoreError> {
    let select = "SELECT quarters, dimensions, visitors, addresses FROM visit_day WHERE rowid = ?1";
    let columns =
        transaction.prepare_cached(select)?.query_row([row], |row| byte_columns(row, 0)).optional()?;
    let Some(columns) = columns else { return Ok(()) };
    let merged = columns.merged()?;
    let update =
        "UPDATE visit_day SET quarters = ?2, dimensions = ?3, visitors = ?4, addresses = ?5, appended = 0
         WHERE rowid = ?1";
    let values = params![row, merged.quarters, merged.dimensions, merged.visitors, merged.addresses];
    transaction.prepare_cached(update)?.execute(values)?;
    Ok(())
}

/// Reads byte columns from four columns of a row.
pub(super) fn byte_columns(row: &Row<'_>, from: usize) -> Result<ByteColumns, rusqlite::Error> {
    Ok(ByteColumns {
        quarters: row.get(from)?,
        dimensions: row.get(from + 1)?,
        visitors: row.get(from + 2)?,
        addresses: row.get(from + 3)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use visits::{
        Day, Subject,
        tally::{Counted, Dimension, Quarter, Tally, Values},
    };

    use super::*;
    use crate::{Columns, Days, sqlite::counters, sqlite::tests::memory};

    const ALL: Columns = Columns { quarters: true, dimensions: true, visitors: true, addresses: true };

    fn delta(chunks: [Vec<u8>; 4]) -> DayDelta {
        let [quarters, dimensions, visitors, addresses] = chunks;
        let delta = Delta { total: 1, bots: 0, quarters, dimensions, visitors, addresses };
        DayDelta { subject: Subject::All(None).key(), day: Day::from_stored(20_000), delta }
    }

    fn stored(connection: &Connection) -> crate::DayCounters {
        let days = Days { first: Day::from_stored(20_000), end: Day::from_stored(20_001) };
        counters::days(connection, Subject::All(None), days, ALL).unwrap().remove(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_of_any_values_are_appended_as_they_are(
            parts in prop::collection::vec(prop::array::uniform4(prop::collection::vec(
                prop_oneof![Just(0_u8), Just(0xff), Just(0xc3), any::<u8>()], 0..40)), 1..6),
        ) {
            let connection = memory();
            let mut expected: [Vec<u8>; 4] = Default::default();
            for part in &parts {
                add(&connection, 0, &[delta(part.clone())]).unwrap();
                expected.iter_mut().zip(part).for_each(|(all, bytes)| all.extend(bytes));
            }
            let found = stored(&connection);
            prop_assert_eq!([found.quarters, found.dimensions, found.visitors, found.addresses], expected);
            prop_assert_eq!(found.total, i64::try_from(parts.len()).unwrap());
        }
    }

    #[test]
    fn a_row_that_grows_long_is_merged_and_reads_the_same() {
        let connection = memory();
        let mut all = Tally::default();
        for batch in 0..40_u64 {
            let mut tally = Tally::default();
            for visit in 0..300 {
                let key = batch * 300 + visit;
                tally.add(&Counted {
                    quarter: Quarter::new(3).unwrap(),
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
            all.merge(&tally);
            let delta = DayDelta { delta: tally.delta(), ..delta(Default::default()) };
            add(&connection, 0, &[delta]).unwrap();
        }
        let found = stored(&connection);
        let columns = visits::tally::Columns {
            quarters: &found.quarters,
            dimensions: &found.dimensions,
            visitors: &found.visitors,
            addresses: &found.addresses,
        };
        assert_eq!(Tally::from_chunks(columns).unwrap(), all);
        // Each visitor takes four bytes until the row is merged.
        assert!(found.visitors.len() < 40 * 300 * 4, "{} bytes", found.visitors.len());
        assert_eq!(found.total, 12_000);
    }
}
