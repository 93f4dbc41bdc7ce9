//! Errors of commands, of configuration, and of the server's start.

use std::io;

use daemon::Exit;
use store::StoreError;

/// The error type of this library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The value of a flag is invalid.
    #[error("{flag} {value}: {reason}")]
    Config {
        /// The flag.
        flag: &'static str,
        /// The value; a secret is left out.
        value: String,
        /// The problem, and the expected form.
        reason: String,
    },
    /// Two settings contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// A server or a part of the work failed: which one, without its password, and why.
    #[error("{0}")]
    Failed(String, Exit, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database refused a command.
    #[error("database")]
    Store(#[from] StoreError),
    /// A call of another server's API failed.
    #[error(transparent)]
    Client(#[from] crate::ClientError),
    /// A task has panicked.
    #[error("the task {0:?} has failed")]
    TaskFailed(&'static str),
    /// A system call failed.
    #[error("system")]
    Io(#[from] io::Error),
    /// The system provided no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

impl Error {
    /// Returns the exit code of the process for this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config { .. } | Self::Contradiction(_) => Exit::Config,
            Self::Failed(_, exit, _) => *exit,
            Self::Store(StoreError::Unreachable(_) | StoreError::TimedOut) => Exit::Unavailable,
            Self::Client(error) => error.exit(),
            Self::Store(_) | Self::Io(_) | Self::TaskFailed(_) | Self::Random(_) => Exit::Internal,
        }
    }
}

/// Returns the error for the value of a flag.
pub fn wrong_value(flag: &'static str, value: impl ToString, reason: impl ToString) -> Error {
    Error::Config { flag, value: value.to_string(), reason: reason.to_string() }
}
