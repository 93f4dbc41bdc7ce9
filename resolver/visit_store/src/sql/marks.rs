//! Marks of busy quarter hours.

use store::Value;
use visits::{QUARTER, VisitId};

use super::{VisitSql, rows};
use crate::{Marks, MarksKey, RowQuery, VisitStoreError};

fn values(key: MarksKey) -> Vec<Value> {
    let subject = key.subject.key();
    vec![
        subject.kind.into(),
        subject.subject.into(),
        subject.part.into(),
        key.quarter.into(),
        Value::Bool(key.people_only),
    ]
}

/// Returns the stored marks of a quarter hour.
pub(crate) async fn marks(sql: &mut dyn VisitSql, key: MarksKey) -> Result<Option<Marks>, VisitStoreError> {
    let query = "SELECT total, ids FROM visit_marks
         WHERE kind = $1 AND subject = $2 AND part = $3 AND quarter = $4 AND people_only = $5";
    let mut rows = sql.query(query, &values(key)).await?;
    let Some(row) = rows.first_mut() else { return Ok(None) };
    let ids = row.take_bytes(1)?;
    let (ids, _) = ids.as_chunks::<8>();
    let ids = ids.iter().map(|id| VisitId::from_stored(i64::from_le_bytes(*id))).collect();
    Ok(Some(Marks { total: row.int(0)?.unsigned_abs(), ids }))
}

/// Computes the marks of a quarter hour from its rows.
pub(crate) async fn make(sql: &mut dyn VisitSql, key: MarksKey) -> Result<Marks, VisitStoreError> {
    let query = RowQuery {
        subject: key.subject,
        people_only: key.people_only,
        from: VisitId::floor(key.quarter),
        before: VisitId::floor(key.quarter.saturating_add(QUARTER)),
        skip: 0,
        most: 0,
    };
    let every = format!(
        "SELECT id, total FROM (
             SELECT id, row_number() OVER (ORDER BY id DESC) AS place, count(*) OVER () AS total
             FROM visit WHERE {}
         ) AS numbered WHERE (place - 1) % {} = 0 ORDER BY id DESC",
        rows::condition(sql.dialect(), &query),
        Marks::EVERY
    );
    let found = sql.query(&every, &[]).await?;
    let total = found.first().map_or(Ok(0), |row| row.int(1))?.unsigned_abs();
    let ids = found.iter().map(|row| Ok(VisitId::from_stored(row.int(0)?)));
    Ok(Marks { total, ids: ids.collect::<Result<_, VisitStoreError>>()? })
}

/// Stores marks in place of earlier ones.
pub(crate) async fn store(
    sql: &mut dyn VisitSql,
    key: MarksKey,
    marks: &Marks,
) -> Result<(), VisitStoreError> {
    let insert = "INSERT INTO visit_marks (kind, subject, part, quarter, people_only, total, ids)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (kind, subject, part, quarter, people_only) DO UPDATE SET
             total = excluded.total, ids = excluded.ids";
    let ids = marks.ids.iter().flat_map(|id| id.get().to_le_bytes()).collect();
    let mut values = values(key);
    values.extend([Value::count(marks.total), Value::Bytes(ids)]);
    sql.execute(insert, &values).await?;
    Ok(())
}
