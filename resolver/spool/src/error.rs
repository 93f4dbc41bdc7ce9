//! Errors of a spool.

use std::{io, path::PathBuf};

/// Error of a spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process has the spool open.
    #[error("{0}: another process has this spool open: expected a folder of its own for each process")]
    Locked(PathBuf),
    /// The file with the spool's identity is damaged.
    #[error(
        "{0}: expected the identity of the spool, 16 bytes and their checksum. If the spool's events are already stored, \
         or may be lost, remove the folder"
    )]
    Identity(PathBuf),
    /// A sidecar is damaged.
    #[error("{0}: expected its checksum to match")]
    Sidecar(PathBuf),
    /// The folder or a file cannot be read or written.
    #[error("{path}")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system gave no random bytes for a new identity.
    #[error("random bytes for the identity of the spool")]
    Random(#[source] getrandom::Error),
}

impl SpoolError {
    /// Returns a function that adds a path to an error of the system.
    pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// Why a block was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The spool has reached its bound.
    SpoolFull,
    /// The disk, or the user's share of it, is full.
    DiskFull,
    /// The disk failed.
    Io,
    /// The block is larger than [`BLOCK_MAX`](crate::BLOCK_MAX).
    TooLarge,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::SpoolFull, Self::DiskFull, Self::Io, Self::TooLarge];

    /// Returns the name of the reason, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::SpoolFull => "spool-full",
            Self::DiskFull => "disk-full",
            Self::Io => "disk-error",
            Self::TooLarge => "too-large",
        }
    }

    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::DiskFull
            }
            _ => Self::Io,
        }
    }
}
