//! Reasons why a database cannot be read.

use std::io;

use maxminddb::MaxMindDbError;

use crate::database::FILE_MAX;

/// The reason why a database cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GeoIpError {
    /// The file does not exist or cannot be read.
    #[error("expected a file that can be read: {0}")]
    Io(io::Error),
    /// The path is a folder, a device or the like.
    #[error("expected a regular file")]
    NotAFile,
    /// The file is larger than the limit on its memory.
    #[error("expected a file of at most {} MiB", FILE_MAX >> 20)]
    TooLarge,
    /// The content has another format, or is damaged.
    #[error("expected a database in MaxMind DB format: {0}")]
    Malformed(MaxMindDbError),
    /// The database has other data than countries or cities.
    #[error("expected a database of countries or cities, such as GeoLite2-City, not one of the type {0:?}")]
    OtherType(String),
    /// The thread that read the file has panicked, or the process is stopping.
    #[error("the read of the file was interrupted")]
    Stopped,
}
