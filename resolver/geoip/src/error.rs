//! Reasons why a database cannot be read.

use std::io;

use maxminddb::MaxMindDbError;

use crate::database::FILE_MAX;

/// The reason why a database cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GeoIpError {
    /// The file does not exist or cannot be read.
    #[error("the file cannot be read: {0}")]
    Io(io::Error),
    /// The path is a folder, a device or the like.
    #[error("not a regular file")]
    NotAFile,
    /// The file is larger than the limit on its memory.
    #[error("the file has more than {} MiB", FILE_MAX >> 20)]
    TooLarge,
    /// The content has another format, or is damaged.
    #[error("not a database in MaxMind DB format: {0}")]
    Malformed(MaxMindDbError),
    /// The database has other data than countries or cities.
    #[error("a database of the type {0:?} has no countries or cities: use one such as GeoLite2-City")]
    OtherType(String),
    /// The thread that read the file has panicked, or the process is stopping.
    #[error("the read of the file was interrupted")]
    Stopped,
}
