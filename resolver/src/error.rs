//! Errors that keep the resolver from starting or continuing. The crates `api` and `redirect`
//! decide the answers to single requests.

use std::io;

use daemon::Exit;
use store::StoreError;

/// The error type of this library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A command failed, or the configuration or the database keeps the server from starting.
    #[error(transparent)]
    Command(#[from] cli::Error),
    /// A setting has two values: in its former spelling, and in the present one.
    #[error("{0}")]
    Spellings(String),
    /// An address could not be bound.
    #[error("{flag} {address}: cannot listen")]
    Bind {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The embedded issuer could not start.
    #[error("embedded issuer")]
    Issuer(#[from] issuer::Error),
}

impl Error {
    /// Returns the exit code of the process for this error.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Command(error) => error.exit(),
            Self::Spellings(_) | Self::Bind { .. } => Exit::Config,
            Self::Issuer(error) => error.exit(),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Command(error.into())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Command(error.into())
    }
}
