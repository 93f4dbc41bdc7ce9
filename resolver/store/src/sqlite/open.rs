//! Opening a SQLite file: one writing connection, and two read-only ones.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::{SqliteStore, worker::Worker};
use crate::StoreError;

impl SqliteStore {
    /// Opens or creates the file. Blocks on the disk: call it at start-up.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or created.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        create_private(path).map_err(|error| StoreError::Unreachable(Box::new(error)))?;
        let writer = connect(path)?;
        let (reader, lister) = (connect(path)?, connect(path)?);
        for reads in [&reader, &lister] {
            reads.pragma_update(None, "query_only", true)?;
        }
        Ok(Self {
            writer: Worker::start("sqlite-writer", writer),
            reader: Worker::start("sqlite-reader", reader),
            lister: Worker::start("sqlite-lister", lister),
            witness: None,
        })
    }
}

#[cfg(any(test, feature = "inline"))]
impl SqliteStore {
    /// Creates a store that runs each call in place, on a connection that it shares with a test.
    #[must_use]
    pub fn here(connection: &std::sync::Arc<std::sync::Mutex<Connection>>) -> Self {
        let worker = || Worker::Here(std::sync::Arc::clone(connection));
        Self { writer: worker(), reader: worker(), lister: worker(), witness: None }
    }
}

/// Creates the file and its directory readable by their owner only, because they hold links and
/// hashes of API keys. SQLite gives the files beside it the same permissions. Existing files keep
/// their permissions.
fn create_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Another process may lock the file for a moment: `resolver api-key`, or a backup.
    connection.busy_timeout(Duration::from_secs(3))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
