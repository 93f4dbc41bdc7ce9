//! Exit codes, after `sysexits.h`.

use std::process::ExitCode;

/// How a daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Clean,
    /// Bad configuration.
    Config,
    /// A needed server did not answer at start.
    Unavailable,
    /// Anything else.
    Internal,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Config => 64,
            Exit::Unavailable => 69,
            Exit::Internal => 70,
        })
    }
}
