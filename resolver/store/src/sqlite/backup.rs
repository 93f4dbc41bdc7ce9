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
        let made_at = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1);
        let (snapshot, _) = Snapshot::of(&from, None).unwrap();
        snapshot.copy(&to, Some(made_at), &mut progress).unwrap();
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

    #[test]
    fn both_files_are_of_the_same_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (from, to) = (["links.db", "visits.db"].map(path), ["l.db", "v.db"].map(path));
        let writers = from.each_ref().map(|path| open_writer(path).unwrap());
        for writer in &writers {
            writer.execute_batch("CREATE TABLE waits (n INTEGER); INSERT INTO waits VALUES (1)").unwrap();
        }
        let (links, visits) = Snapshot::of(&from[0], Some(&from[1])).unwrap();
        for writer in &writers {
            writer.execute_batch("DELETE FROM waits").unwrap();
        }
        let visits = visits.unwrap();
        for (snapshot, to) in [(&visits, &to[1]), (&links, &to[0])] {
            snapshot.copy(to, None, &mut |_, _| {}).unwrap();
            let count = "SELECT count(*) FROM waits";
            assert_eq!(open_reader(to).unwrap().query_row(count, [], |row| row.get(0)), Ok(1));
        }
    }

    #[test]
    fn nothing_is_passed_on_between_the_moments_of_the_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links.db");
        let writer = open_writer(&path).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(Snapshot::of(&path, None).is_err(), "a transaction adds to the links");
        writer.execute_batch("COMMIT").unwrap();
        assert!(Snapshot::of(&path, None).is_ok());
    }
}
