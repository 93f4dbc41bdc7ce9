//! Counters by day: additions, and merging of the chunks of a row.

use store::{Dialect, Row, Sql, Value};
use visits::{Day, SubjectKey, tally::Counters};

use super::{int, take_counters};
use crate::{DayDelta, Result};

/// Appended bytes at which the columns of a row are merged into one chunk each.
const APPENDED_MAX: i32 = 32 * 1024;

const INSERT: &str =
    "INSERT INTO visit_day AS old (kind, subject, part, day, slot, total, bots, version, appended,
                              quarters, dimensions, visitors, addresses)";

#[derive(Clone, Copy, Debug)]
struct DayKey {
    subject: SubjectKey,
    day: Day,
    slot: i16,
}

/// What is added to a row.
pub(crate) struct Addition<'a> {
    pub(crate) subject: SubjectKey,
    pub(crate) day: Day,
    /// The number of changes that it stands for.
    pub(crate) version: i64,
    /// Bytes that are to be merged with those of the row sooner or later.
    pub(crate) appended: i64,
    pub(crate) counters: &'a Counters,
}

/// Adds to counters, in rows of a slot. Rows without a conflict are new.
pub(crate) async fn add(sql: &mut dyn Sql, slot: i16, days: &[DayDelta]) -> Result<()> {
    let additions: Vec<Addition<'_>> = days
        .iter()
        .map(|DayDelta { subject, day, delta }| Addition {
            subject: *subject,
            day: *day,
            version: 1,
            appended: int(delta.bytes()),
            counters: delta,
        })
        .collect();
    add_all(sql, slot, &additions).await
}

pub(crate) async fn add_all(sql: &mut dyn Sql, slot: i16, days: &[Addition<'_>]) -> Result<()> {
    let long = match sql.dialect() {
        Dialect::Postgres => add_at_once(sql, slot, days).await?,
        Dialect::Sqlite => add_one_by_one(sql, slot, days).await?,
    };
    compact(sql, &long).await
}

/// SQL that appends to a row that exists. `||` of SQLite joins the bytes of two blobs as they are
/// and calls the result a text, which the cast undoes.
fn append(bytes: &str) -> String {
    let join = |column: &str| format!("{column} = CAST(old.{column} || excluded.{column} AS {bytes})");
    format!(
        "ON CONFLICT (kind, subject, part, day, slot) DO UPDATE SET
             total = old.total + excluded.total, bots = old.bots + excluded.bots,
             version = old.version + excluded.version, appended = old.appended + excluded.appended, {}",
        ["quarters", "dimensions", "visitors", "addresses"].map(join).join(", ")
    )
}

/// Adds all rows with one statement, and returns those that have grown too long.
async fn add_at_once(sql: &mut dyn Sql, slot: i16, days: &[Addition<'_>]) -> Result<Vec<DayKey>> {
    if days.is_empty() {
        return Ok(Vec::new());
    }
    let add = format!(
        "WITH stored AS (
             {INSERT}
             SELECT kind, subject, part, day, {slot}, total, bots, version, appended,
                    quarters, dimensions, visitors, addresses
             FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                  AS new (kind, subject, part, day, total, bots, version, appended,
                          quarters, dimensions, visitors, addresses)
             {} RETURNING kind, subject, part, day, appended
         )
         SELECT kind, subject, part, day FROM stored WHERE appended > {APPENDED_MAX}",
        append("bytea")
    );
    let ints = |number: fn(&Addition<'_>) -> i64| Value::IntArray(days.iter().map(number).collect());
    let chunks = |chunk: fn(&Counters) -> &Vec<u8>| {
        Value::BytesArray(days.iter().map(|day| chunk(day.counters).clone()).collect())
    };
    let values = [
        ints(|day| day.subject.kind.into()),
        ints(|day| day.subject.subject),
        ints(|day| day.subject.part),
        ints(|day| day.day.get().into()),
        ints(|day| day.counters.total),
        ints(|day| day.counters.bots),
        ints(|day| day.version),
        ints(|day| day.appended),
        chunks(|counters| &counters.quarters),
        chunks(|counters| &counters.dimensions),
        chunks(|counters| &counters.visitors),
        chunks(|counters| &counters.addresses),
    ];
    let key = |row: &Row| {
        let subject = SubjectKey { kind: row.number(0)?, subject: row.int(1)?, part: row.int(2)? };
        Ok(DayKey { subject, day: Day::from_stored(row.number(3)?), slot })
    };
    sql.query(&add, &values).await?.iter().map(key).collect()
}

/// Adds each row with a statement, and returns those that have grown too long.
async fn add_one_by_one(sql: &mut dyn Sql, slot: i16, days: &[Addition<'_>]) -> Result<Vec<DayKey>> {
    let add = format!(
        "{INSERT} VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) {} RETURNING appended",
        append("BLOB")
    );
    let mut long = Vec::new();
    for Addition { subject, day, version, appended, counters } in days {
        let mut values = Vec::from(key_values(DayKey { subject: *subject, day: *day, slot }));
        values.extend([counters.total, counters.bots, *version, *appended].map(Value::Int));
        let Counters { quarters, dimensions, visitors, addresses, .. } = counters;
        let chunks = [quarters, dimensions, visitors, addresses];
        values.extend(chunks.map(|chunk| Value::Bytes(chunk.clone())));
        if sql.number(&add, &values).await? > Some(APPENDED_MAX.into()) {
            long.push(DayKey { subject: *subject, day: *day, slot });
        }
    }
    Ok(long)
}

fn key_values(DayKey { subject, day, slot }: DayKey) -> [Value; 5] {
    [subject.kind.into(), subject.subject.into(), subject.part.into(), day.get().into(), slot.into()]
}

/// Merges chunks. Damaged ones are logged and stay as they are: other counters must not wait until
/// they are repaired.
pub(crate) fn merged((subject, day): (SubjectKey, Day), counters: Counters) -> Counters {
    match counters.merged() {
        Ok(merged) => Counters { total: counters.total, bots: counters.bots, ..merged },
        Err(error) => {
            tracing::error!(%error, ?subject, day = day.get(), "counters of visits cannot be merged");
            counters
        }
    }
}

/// Merges the chunks of rows that have grown long. What is read from them stays the same.
async fn compact(sql: &mut dyn Sql, keys: &[DayKey]) -> Result<()> {
    let select = format!(
        "SELECT total, bots, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = $1 AND subject = $2 AND part = $3 AND day = $4 AND slot = $5 {}",
        sql.dialect().for_update()
    );
    let update =
        "UPDATE visit_day SET quarters = $1, dimensions = $2, visitors = $3, addresses = $4, appended = 0
         WHERE kind = $5 AND subject = $6 AND part = $7 AND day = $8 AND slot = $9";
    for key in keys {
        let place = key_values(*key);
        let Some(mut row) = sql.first(&select, &place).await? else { continue };
        let counters = merged((key.subject, key.day), take_counters(&mut row, 0)?);
        let Counters { quarters, dimensions, visitors, addresses, .. } = counters;
        let columns = [quarters, dimensions, visitors, addresses].map(Value::Bytes);
        let values: Vec<Value> = columns.into_iter().chain(place).collect();
        sql.execute(update, &values).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;
    use proptest::prelude::*;
    use rusqlite::Connection;
    use store::sqlite::SqliteSql;
    use visits::{
        QUARTER, Subject,
        tally::{Counted, Dimension, Quarter, Tally},
    };

    use super::*;
    use crate::{Columns, Days, sql::counters, sqlite::tests::memory};

    fn delta(chunks: [Vec<u8>; 4]) -> DayDelta {
        let [quarters, dimensions, visitors, addresses] = chunks;
        let delta = Counters { total: 1, bots: 0, quarters, dimensions, visitors, addresses };
        DayDelta { subject: Subject::All(None).key(), day: Day::from_stored(20_000), delta }
    }

    fn add_to(connection: &mut Connection, delta: DayDelta) {
        block_on(add(&mut SqliteSql(connection), 0, &[delta])).unwrap();
    }

    fn stored(connection: &mut Connection) -> Counters {
        let days = Days { first: Day::from_stored(20_000), end: Day::from_stored(20_001) };
        let sql = &mut SqliteSql(connection);
        block_on(counters::days(sql, Subject::All(None), days, Columns::ALL)).unwrap().remove(0).counters
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
                    values: Dimension::ALL.map(|dimension| match dimension {
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
