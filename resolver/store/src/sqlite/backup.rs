//! Copies of SQLite files, made while they are in use.
//!
//! 1. A copy has the state of one moment: a read transaction holds it while pages are copied. In
//!    WAL mode that stops no writer. Without the transaction, SQLite would begin again after each
//!    commit of another process.
//! 2. The files of links and visits are copied as of the same moment. What one has for the other
//!    (changes of tags, events, visits by link) is forgotten there only after it arrived here, so
//!    from two moments some of it would be in neither copy. While the links are locked, nothing
//!    arrives there and nothing is forgotten.
//! 3. A copy of the links is marked as one (`user_version`, the minutes since 1970 of the backup).
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
    Result, StoreError,
    sql::{Sql as _, history},
};

/// Pages of a step: progress is reported after each.
const STEP_PAGES: i32 = 1_024;
/// The pause before a step is tried again that met a lock.
const PAUSE: Duration = Duration::from_millis(20);

/// The state of a database file at one moment.
#[derive(Debug)]
pub struct Snapshot(Connection);

impl Snapshot {
    /// Holds the states of the files of links and, if there is one, of visits at the same moment.
    /// Writers of the links wait meanwhile. Blocks on the disk.
    pub fn of(links: &Path, visits: Option<&Path>) -> Result<(Self, Option<Self>)> {
        let lock = open_writer(links)?;
        lock.execute_batch("BEGIN IMMEDIATE")?;
        let held = (Self::hold(links)?, visits.map(Self::hold).transpose()?);
        lock.execute_batch("ROLLBACK")?;
        Ok(held)
    }

    fn hold(path: &Path) -> Result<Self> {
        let connection = open_reader(path)?;
        connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_master")?;
        Ok(Self(connection))
    }

    /// Copies the state to a new file, and reports the pages done and their total. With a time, the
    /// copy is marked as a backup of links made then. Blocks on the disk.
    pub fn copy(
        &self,
        to: &Path,
        made_at: Option<Timestamp>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut copy = open_writer(to)?;
        copy_pages(&self.0, &mut copy, progress)?;
        // One file, without a log beside it.
        copy.pragma_update(None, "journal_mode", "DELETE")?;
        if let Some(made_at) = made_at {
            copy.pragma_update(None, "user_version", made_at.as_second() / 60)?;
        }
        copy.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}

fn copy_pages(source: &Connection, copy: &mut Connection, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
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
pub(super) async fn begin_after_restore(sql: &mut SqliteSql<'_>) -> Result<Option<Timestamp>> {
    let rows = sql.query("PRAGMA user_version", &[]).await?;
    let minutes = rows.first().map(|row| row.int(0)).transpose()?.unwrap_or(0);
    if minutes == 0 {
        return Ok(None);
    }
    history::begin_history(sql, None).await?;
    sql.query("PRAGMA user_version = 0", &[]).await?;
    let made_at = Timestamp::from_second(minutes.saturating_mul(60));
    made_at.map(Some).map_err(|error| StoreError::Corrupt(error.to_string()))
}
