//! Opening a SQLite file: one writing connection, and read-only ones.

use std::{
    borrow::Cow,
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::Path,
    time::Duration,
};

use links::{ESCAPED_IN_PATHS, search_key, sort_key};
use percent_encoding::percent_encode;
use rusqlite::{Connection, OpenFlags, functions::FunctionFlags};

use super::{SqliteStore, worker::Worker};
use crate::{Result, StoreError};

impl SqliteStore {
    /// Opens or creates the file. Blocks on the disk: call it at start-up.
    pub fn open(path: &Path) -> Result<Self> {
        let writer = open_writer(path)?;
        let (reader, lister) = (open_reader(path)?, open_reader(path)?);
        Ok(Self {
            writer: Worker::start("sqlite-writer", writer),
            reader: Worker::start("sqlite-reader", reader),
            lister: Worker::start("sqlite-lister", lister),
            witness: None,
        })
    }

    /// Opens an existing file to look at it, also while a server has it open: nothing is created,
    /// written or locked. Blocks on the disk.
    pub fn inspect(path: &Path) -> Result<Self> {
        let worker = |name: &str| Ok::<_, StoreError>(Worker::start(name, open_to_inspect(path)?));
        let (writer, reader, lister) =
            (worker("sqlite-writer")?, worker("sqlite-reader")?, worker("sqlite-lister")?);
        Ok(Self { writer, reader, lister, witness: None })
    }
}

#[cfg(any(test, feature = "inline"))]
impl SqliteStore {
    /// Creates a store that runs each call in place, on a connection that it shares with a test.
    pub fn here(connection: &std::sync::Arc<std::sync::Mutex<Connection>>) -> Self {
        let functions = add_functions(&connection.lock().expect("no code panics while it holds this lock"));
        functions.expect("SQLite takes functions");
        let worker = || Worker::here(connection);
        Self { writer: worker(), reader: worker(), lister: worker(), witness: None }
    }
}

/// Opens or creates a file for the one connection that writes. Its commits are durable when they
/// return. Blocks on the disk.
pub fn open_writer(path: &Path) -> Result<Connection> {
    create_private(path).map_err(|error| StoreError::Unreachable(Box::new(error)))?;
    connect(path)
}

/// Opens a connection that only reads, to a file that [`open_writer`] has opened. Blocks on the
/// disk.
pub fn open_reader(path: &Path) -> Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open_to_inspect(path: &Path) -> Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // Without a log, no process has the file open, and SQLite would create one. With a log, SQLite
    // would write to the log's index.
    let how = if Path::new(&log).exists() { "readonly_shm=1" } else { "immutable=1" };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("{}&{how}", read_only_uri(path)?), flags)?;
    connection.busy_timeout(Duration::from_secs(1))?;
    add_functions(&connection)?;
    Ok(connection)
}

/// Lets a connection read another file too, whose tables are `name.table`. `name` is an identifier.
pub fn attach(connection: &Connection, name: &str, path: &Path) -> Result<()> {
    connection.execute(&format!("ATTACH ?1 AS {name}"), [read_only_uri(path)?])?;
    Ok(())
}

/// Returns the URI that opens a file for reading, and does not create it.
fn read_only_uri(path: &Path) -> Result<String> {
    let path = absolute(path)?;
    Ok(format!("file:{}?mode=ro", percent_encode(path.as_os_str().as_bytes(), ESCAPED_IN_PATHS)))
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

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    // An absolute path begins with a slash, so it is never taken for a URI.
    let connection = Connection::open_with_flags(absolute(path)?, flags)?;
    // Another process may lock the file for a moment: `resolver api-key`, or a backup.
    connection.busy_timeout(Duration::from_secs(3))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    add_functions(&connection)?;
    Ok(connection)
}

/// Adds the functions that statements search and sort by. Indexes must not use them: other programs
/// that open the file lack them.
fn add_functions(connection: &Connection) -> Result<()> {
    add_function(connection, "search_key", search_key)?;
    add_function(connection, "sort_key", sort_key)
}

fn add_function(
    connection: &Connection,
    name: &str,
    key: impl Fn(&str) -> Cow<'_, str> + Send + 'static,
) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    Ok(connection.create_scalar_function(name, 1, flags, move |call| {
        let text = call.get_raw(0).as_str_or_null()?;
        Ok(text.map(|text| key(text).into_owned()))
    })?)
}

fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(path).map_err(|error| StoreError::Unreachable(Box::new(error)))
}
