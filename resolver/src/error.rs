//! Why the resolver cannot start or go on. What a single request is answered is decided in [`crate::http`].

use std::io;

use daemon::Exit;
use store::StoreError;

/// The library's one error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag's value cannot be.
    #[error("{flag} {value}: {reason}")]
    Config {
        /// The flag.
        flag: &'static str,
        /// Its value; a secret is left out.
        value: String,
        /// What is wrong with it, and what was expected.
        reason: String,
    },
    /// An address could not be bound.
    #[error("{flag} {address}: cannot listen")]
    Bind {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The database did not answer at start, or could not do what it was asked.
    #[error("--database {database}: not to be had within {seconds} s")]
    Unreachable {
        /// Which, without its password.
        database: String,
        /// How long was waited.
        seconds: u64,
        /// The last error.
        source: StoreError,
    },
    /// The database said no to a command.
    #[error("database")]
    Store(#[from] StoreError),
    /// The issuer inside this process could not start.
    #[error("embedded issuer")]
    Issuer(#[from] issuer::Error),
    /// A call of another server's API came to nothing.
    #[error(transparent)]
    Client(#[from] crate::commands::ClientError),
    /// A task that the process cannot do without has panicked.
    #[error("the task {0:?} has failed")]
    TaskFailed(&'static str),
    /// The system refused something.
    #[error("system")]
    Io(#[from] io::Error),
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

impl Error {
    /// The exit code that the daemon ends with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config { .. } | Self::Bind { .. } => Exit::Config,
            Self::Unreachable { .. } | Self::Store(StoreError::Unreachable(_) | StoreError::TimedOut) => {
                Exit::Unavailable
            }
            Self::Issuer(error) => error.exit(),
            Self::Client(error) => error.exit(),
            Self::Store(_) | Self::Io(_) | Self::TaskFailed(_) | Self::Random(_) => Exit::Internal,
        }
    }
}
