//! Merging of the chunks of a row of counters.

use store::Value;
use visits::{Day, SubjectKey, tally::Counters};

use super::{VisitSql, take_counters};
use crate::Result;

/// Appended bytes at which the columns of a row are merged into one chunk each.
pub(crate) const APPENDED_MAX: i32 = 32 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct DayKey {
    pub(crate) subject: SubjectKey,
    pub(crate) day: Day,
    pub(crate) slot: i16,
}

/// Merges the chunks of rows that have grown long. What is read from them stays the same.
pub(crate) async fn compact(sql: &mut dyn VisitSql, keys: &[DayKey]) -> Result<()> {
    let select = format!(
        "SELECT total, bots, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = $1 AND subject = $2 AND part = $3 AND day = $4 AND slot = $5 {}",
        sql.dialect().for_update()
    );
    let update =
        "UPDATE visit_day SET quarters = $1, dimensions = $2, visitors = $3, addresses = $4, appended = 0
         WHERE kind = $5 AND subject = $6 AND part = $7 AND day = $8 AND slot = $9";
    for DayKey { subject, day, slot } in keys {
        let key: [Value; 5] = [
            subject.kind.into(),
            subject.subject.into(),
            subject.part.into(),
            day.get().into(),
            (*slot).into(),
        ];
        let mut rows = sql.query(&select, &key).await?;
        let Some(row) = rows.first_mut() else { continue };
        let Counters { quarters, dimensions, visitors, addresses, .. } = take_counters(row, 0)?.merged()?;
        let columns = [quarters, dimensions, visitors, addresses].map(Value::Bytes);
        let values: Vec<Value> = columns.into_iter().chain(key).collect();
        sql.execute(update, &values).await?;
    }
    Ok(())
}
