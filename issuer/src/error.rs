//! Errors that prevent a start or a run. Single calls have [`crate::core::Refusal`].

use std::{fmt::Display, io};

use daemon::Exit;

use crate::ledger::LedgerError;

/// The library's error type.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The value of a flag is not valid.
    #[error("{flag} {value:?}: {reason}")]
    Config {
        /// Name of the flag.
        flag: &'static str,
        /// Value of the flag.
        value: String,
        /// Why the value is not valid.
        reason: String,
    },
    /// An address could not be bound.
    #[error("{flag} {address}: cannot listen")]
    Bind {
        /// Name of the flag.
        flag: &'static str,
        /// Value of the flag.
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A required server did not answer at startup.
    #[error("{flag} {address}: unreachable, tried for up to {seconds} s")]
    Unreachable {
        /// Name of the flag with the server's address.
        flag: &'static str,
        /// Value of the flag.
        address: String,
        /// Time limit of the attempts, in seconds.
        seconds: u64,
        /// Last error, if any.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The ledger could not be opened or read.
    #[error("ledger")]
    Ledger(#[from] LedgerError),
    /// A gRPC server or client failed.
    #[error("gRPC transport")]
    Transport(#[from] tonic::transport::Error),
    /// No issuer answered as the leader.
    #[cfg(feature = "etcd")]
    #[error("no issuer leads: {}", crate::status_command::no_leader(.0))]
    NoLeader(Vec<(String, crate::status_command::NonLeaderAnswer)>),
    /// An operation of the operating system failed.
    #[error("system")]
    Io(#[from] io::Error),
    /// A task without which the process cannot work has panicked.
    #[error("the task {0:?} has failed")]
    TaskFailed(&'static str),
    /// An invariant of the program does not hold.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// Returns the error for a flag whose value is not valid.
    pub fn config(flag: &'static str, value: impl Display, reason: impl Display) -> Self {
        Self::Config { flag, value: value.to_string(), reason: reason.to_string() }
    }

    /// Returns the exit code for this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config { .. } | Self::Bind { .. } => Exit::Config,
            Self::Unreachable { .. } => Exit::Unavailable,
            #[cfg(feature = "etcd")]
            Self::NoLeader(_) => Exit::Unavailable,
            Self::Ledger(LedgerError::InUse(_)) => Exit::Config,
            Self::Ledger(_) | Self::Transport(_) | Self::Io(_) | Self::TaskFailed(_) | Self::Internal(_) => {
                Exit::Internal
            }
        }
    }
}
