//! Upkeep: retention, and erased secrets.

use rusqlite::Connection;
use store::sqlite::write;
use visits::Day;

use crate::{
    Result,
    sql::{deletion, erasures},
};

/// Notes from which day on rows are kept. Noted first: from that day on, the rows are complete.
pub(super) fn note_rows_from(connection: &Connection, rows_from: Day) -> Result<()> {
    connection.execute("UPDATE visit_upkeep SET rows_from = max(rows_from, ?1)", [rows_from.get()])?;
    Ok(())
}

/// Erases the secrets of the day before yesterday and earlier: their bytes in the file are
/// overwritten, and the write-ahead log, which has copies of them, is emptied.
pub(super) fn erase_secrets(connection: &mut Connection) -> Result<()> {
    let erase = "DELETE FROM visit_secret
         WHERE name LIKE 'day-%' AND CAST(substr(name, 5) AS INTEGER) <= unixepoch() / 86400 - 2";
    connection.pragma_update(None, "secure_delete", true)?;
    let erased = connection.execute(erase, []);
    connection.pragma_update(None, "secure_delete", false)?;
    if erased? > 0 {
        // While a reader needs the log it stays, and a later checkpoint starts it anew.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    Ok(())
}

/// Deletes some of the rows that deletions and erasures have left, and overwrites them.
pub(super) fn delete_securely(connection: &mut Connection) -> Result<Option<u64>> {
    connection.pragma_update(None, "secure_delete", true)?;
    let deleted = write(connection, async |sql| match deletion::delete_rows(sql).await? {
        deleted @ Some(_) => Ok(deleted),
        None => erasures::delete_rows(sql).await,
    });
    connection.pragma_update(None, "secure_delete", false)?;
    deleted
}
