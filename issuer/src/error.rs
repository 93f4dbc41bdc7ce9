//! Why the issuer cannot start or go on. Refusals of single calls are [`crate::core::Refusal`].

use std::io;

use daemon::Exit;

use crate::ledger::LedgerError;

/// The library's one error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag's value cannot be.
    #[error("{flag} {value:?}: {reason}")]
    Config {
        /// The flag.
        flag: &'static str,
        /// Its value.
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
    /// A needed server did not answer at start.
    #[error("{flag} {address}: not to be reached, tried for up to {seconds} s")]
    Unreachable {
        /// The flag that names it.
        flag: &'static str,
        /// Its value.
        address: String,
        /// How long was waited.
        seconds: u64,
        /// The last error, when there was one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The ledger could not be opened or read.
    #[error("ledger")]
    Ledger(#[from] LedgerError),
    /// A gRPC server or client failed.
    #[error("gRPC transport")]
    Transport(#[from] tonic::transport::Error),
    /// A call was answered with an error.
    #[error("{0}")]
    Call(Box<tonic::Status>),
    /// The system refused something.
    #[error("system")]
    Io(#[from] io::Error),
    /// A task that the process cannot do without has panicked.
    #[error("the task {0:?} has failed")]
    TaskFailed(&'static str),
    /// Something that does not happen did.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// The exit code that a daemon ends with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config { .. } | Self::Bind { .. } => Exit::Config,
            Self::Unreachable { .. } | Self::Call(_) => Exit::Unavailable,
            Self::Ledger(LedgerError::InUse { .. }) => Exit::Config,
            Self::Ledger(_) | Self::Transport(_) | Self::Io(_) | Self::TaskFailed(_) | Self::Internal(_) => {
                Exit::Internal
            }
        }
    }
}
