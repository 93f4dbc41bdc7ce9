//! Marks of busy quarter hours.

use rusqlite::{Connection, OptionalExtension as _, params};
use visits::{QUARTER, VisitId};

use super::{int, rows};
use crate::{Marks, MarksKey, RowQuery, VisitStoreError};

/// Returns the stored marks of a quarter hour.
pub(super) fn marks(connection: &Connection, key: MarksKey) -> Result<Option<Marks>, VisitStoreError> {
    let query = "SELECT total, ids FROM visit_marks
         WHERE kind = ?1 AND subject = ?2 AND part = ?3 AND quarter = ?4 AND people_only = ?5";
    let subject = key.subject.key();
    let values = params![subject.kind, subject.subject, subject.part, key.quarter, key.people_only];
    let found: Option<(i64, Vec<u8>)> =
        connection.query_row(query, values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.map(|(total, ids)| {
        let (ids, _) = ids.as_chunks::<8>();
        let ids = ids.iter().map(|id| VisitId::from_stored(i64::from_le_bytes(*id))).collect();
        Marks { total: total.unsigned_abs(), ids }
    }))
}

/// Computes the marks of a quarter hour from its rows.
pub(super) fn make(connection: &Connection, key: MarksKey) -> Result<Marks, VisitStoreError> {
    let query = RowQuery {
        subject: key.subject,
        people_only: key.people_only,
        from: VisitId::floor(key.quarter),
        before: VisitId::floor(key.quarter.saturating_add(QUARTER)),
        skip: 0,
        most: 0,
    };
    let ids = format!("SELECT id FROM visit WHERE {} ORDER BY id DESC", rows::condition(&query));
    let mut ids = connection.prepare(&ids)?;
    let mut marks = Marks { total: 0, ids: Vec::new() };
    for id in ids.query_map([], |row| row.get(0))? {
        let id = VisitId::from_stored(id?);
        if marks.total.is_multiple_of(Marks::EVERY) {
            marks.ids.push(id);
        }
        marks.total += 1;
    }
    Ok(marks)
}

/// Stores the marks of a quarter hour.
pub(super) fn store(connection: &Connection, key: MarksKey, marks: &Marks) -> Result<(), VisitStoreError> {
    let insert = "INSERT INTO visit_marks (kind, subject, part, quarter, people_only, total, ids)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (kind, subject, part, quarter, people_only) DO UPDATE SET
             total = excluded.total, ids = excluded.ids";
    let subject = key.subject.key();
    let ids: Vec<u8> = marks.ids.iter().flat_map(|id| id.get().to_le_bytes()).collect();
    let values = params![
        subject.kind,
        subject.subject,
        subject.part,
        key.quarter,
        key.people_only,
        int(marks.total),
        ids
    ];
    connection.execute(insert, values)?;
    Ok(())
}
