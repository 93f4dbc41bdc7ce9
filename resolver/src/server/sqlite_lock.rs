//! The lock of a SQLite file: one process serves from it.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
};

use cli::{args::Database, wrong_value};

/// The lock, until it is dropped. Each process keeps its own cache of links, and is not notified of
/// changes by another process to a file.
pub(super) struct SqliteLock {
    _file: File,
}

impl SqliteLock {
    /// Locks a SQLite file for this process; `None` for any other database.
    ///
    /// # Errors
    /// Returns an error if another process has the lock.
    pub(super) fn take(database: &Database) -> Result<Option<Self>, cli::Error> {
        let Database::Sqlite(path) = database else { return Ok(None) };
        let failed = |error: io::Error| wrong_value("--database", path.display(), error);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let mut beside = path.clone().into_os_string();
        beside.push(".lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(beside).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::Error(error)) => Err(failed(error)),
            Err(TryLockError::WouldBlock) => Err(wrong_value(
                "--database",
                database,
                "another resolver serves from this file: expected one process for a SQLite file, \
                 or postgres://… for several",
            )),
        }
    }
}
