//! Copies of a SQLite file, made while it is in use.
//!
//! 1. A copy has the state of one moment: a read transaction holds it while pages are copied. In
//!    WAL mode that stops no writer. Without the transaction, SQLite would begin again after each
//!    commit of another process.
//! 2. A copy of the links is marked as one (`user_version`, the minutes since 1970 of the backup).
//!    The first start on it begins a new history and removes the mark, in one transaction: numbers
//!    that were allocated after the backup may be public codes. So a restored file is safe however
//!    it came to its place.

use std::{path::Path, thread::sleep, time::Duration};

use jiff::Timestamp;
use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
};

use super::{open_reader, open_writer, transaction::SqliteSql};
use crate::{
    StoreError,
    sql::{self, Sql as _},
};

/// Pages of a step: progress is reported after each.
const STEP_PAGES: i32 = 1_024;
/// The pause before a step is tried again that met a lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Copies a database file to a new file, and reports the pages done and their total. With a time,
/// the copy is marked as a backup of links made then. Blocks on the disk.
///
/// # Errors
/// Returns an error if a file cannot be read or written.
pub fn back_up(
    from: &Path,
    to: &Path,
    made_at: Option<Timestamp>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), StoreError> {
    let source = open_reader(from)?;
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_master")?;
    let mut copy = open_writer(to)?;
    copy_pages(&source, &mut copy, progress)?;
    // One file, without a log beside it.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    if let Some(made_at) = made_at {
        copy.pragma_update(None, "user_version", made_at.as_second() / 60)?;
    }
    copy.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn copy_pages(
    source: &Connection,
    copy: &mut Connection,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), StoreError> {
    let backup = Backup::new(source, copy)?;
    loop {
        let step = backup.step(STEP_PAGES)?;
        let at = backup.progress();
        let pages = |count: i32| u64::try_from(count).unwrap_or(0);
        progress(pages(at.pagecount - at.remaining), pages(at.pagecount));
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => sleep(PAUSE),
        }
    }
}

/// Begins a new history if the file is a backup that was restored, and returns the time of the
/// backup.
pub(super) async fn begin_after_restore(sql: &mut SqliteSql<'_>) -> Result<Option<Timestamp>, StoreError> {
    let rows = sql.query("PRAGMA user_version", &[]).await?;
    let minutes = rows.first().map(|row| row.int(0)).transpose()?.unwrap_or(0);
    if minutes == 0 {
        return Ok(None);
    }
    sql::begin_history(sql, None).await?;
    sql.query("PRAGMA user_version = 0", &[]).await?;
    let made_at = Timestamp::from_second(minutes.saturating_mul(60));
    made_at.map(Some).map_err(|error| StoreError::Corrupt(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_of_one_moment_though_others_write_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("links.db"), folder.path().join("copy.db"));
        let writer = open_writer(&from).unwrap();
        let filled = "CREATE TABLE row (number INTEGER, text TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO row SELECT i, printf('%0500d', i) FROM n";
        writer.execute_batch(filled).unwrap();
        let mut steps = 0;
        let mut progress = |_, _| {
            steps += 1;
            writer.execute_batch("UPDATE row SET number = number + 1").unwrap();
        };
        back_up(&from, &to, Some(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1)), &mut progress)
            .unwrap();
        assert!(steps > 1 && steps < 10, "it began again: {steps}");
        let copy = open_reader(&to).unwrap();
        let found: (i64, i64, i64) = copy
            .query_row("SELECT count(*), min(number), max(number) FROM row", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(found, (20_000, 1, 20_000));
        let marked: i64 = copy.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(marked, 60);
    }
}
