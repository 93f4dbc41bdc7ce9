//! Marks of busy quarter hours.

use tokio_postgres::{Client, types::Type};
use visits::{QUARTER, VisitId};

use super::{int, rows};
use crate::{Marks, MarksKey, RowQuery, VisitStoreError};

/// Returns the stored marks of a quarter hour.
pub(super) async fn marks(client: &Client, key: MarksKey) -> Result<Option<Marks>, VisitStoreError> {
    let query = "SELECT total, ids FROM visit_marks
         WHERE kind = $1 AND subject = $2 AND part = $3 AND quarter = $4 AND people_only = $5";
    let subject = key.subject.key();
    let found = client
        .query_typed(
            query,
            &[
                (&subject.kind, Type::INT2),
                (&subject.subject, Type::INT8),
                (&subject.part, Type::INT8),
                (&key.quarter, Type::INT8),
                (&key.people_only, Type::BOOL),
            ],
        )
        .await?;
    Ok(found.first().map(|row| {
        let (ids, _) = row.get::<_, &[u8]>(1).as_chunks::<8>();
        let ids = ids.iter().map(|id| VisitId::from_stored(i64::from_le_bytes(*id))).collect();
        Marks { total: row.get::<_, i64>(0).unsigned_abs(), ids }
    }))
}

/// Computes the marks of a quarter hour from its rows, and stores them.
pub(super) async fn make(client: &Client, key: MarksKey) -> Result<Marks, VisitStoreError> {
    let query = RowQuery {
        subject: key.subject,
        people_only: key.people_only,
        from: VisitId::floor(key.quarter),
        before: VisitId::floor(key.quarter + QUARTER),
        skip: 0,
        most: 0,
    };
    let every = format!(
        "SELECT id, total FROM (
             SELECT id, row_number() OVER (ORDER BY id DESC) AS place, count(*) OVER () AS total
             FROM visit WHERE {}
         ) AS numbered WHERE (place - 1) % {} = 0 ORDER BY id DESC",
        rows::condition(&query),
        Marks::EVERY
    );
    let found = client.query_typed(&every, &[]).await?;
    let total = found.first().map_or(0, |row| row.get::<_, i64>(1).unsigned_abs());
    let ids: Vec<i64> = found.iter().map(|row| row.get(0)).collect();
    store(client, key, total, &ids).await?;
    Ok(Marks { total, ids: ids.into_iter().map(VisitId::from_stored).collect() })
}

/// Stores marks in place of earlier ones.
pub(super) async fn store(
    client: &Client,
    key: MarksKey,
    total: u64,
    ids: &[i64],
) -> Result<(), VisitStoreError> {
    let insert = "INSERT INTO visit_marks (kind, subject, part, quarter, people_only, total, ids)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (kind, subject, part, quarter, people_only) DO UPDATE SET total = excluded.total, ids = excluded.ids";
    let subject = key.subject.key();
    let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    client
        .execute_typed(
            insert,
            &[
                (&subject.kind, Type::INT2),
                (&subject.subject, Type::INT8),
                (&subject.part, Type::INT8),
                (&key.quarter, Type::INT8),
                (&key.people_only, Type::BOOL),
                (&int(total), Type::INT8),
                (&ids, Type::BYTEA),
            ],
        )
        .await?;
    Ok(())
}
