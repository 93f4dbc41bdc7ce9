//! Exit codes, after `sysexits.h`.

use std::process::ExitCode;

use clap::Parser;

/// How a daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Clean,
    /// Bad configuration.
    Config,
    /// The link, or whatever else a command asked a server for, is not there.
    NotFound,
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
            Exit::NotFound => 66,
            Exit::Unavailable => 69,
            Exit::Internal => 70,
        })
    }
}

/// Reads flags and environment. Help and version come as errors from the parser, and are none.
///
/// # Errors
/// The code to end with; what there is to say has been said.
pub fn parse<C: Parser>() -> Result<C, ExitCode> {
    C::try_parse().map_err(|error| {
        // A closed standard error leaves nobody to tell.
        let _ = error.print();
        if error.use_stderr() { Exit::Config } else { Exit::Clean }.into()
    })
}

/// Turns what happened into an exit code, and says why in one line.
#[expect(clippy::print_stderr, reason = "the one line that says why the process ends")]
pub fn end(daemon: &str, done: Result<(), (Exit, anyhow::Error)>) -> ExitCode {
    match done {
        Ok(()) => Exit::Clean.into(),
        Err((exit, error)) => {
            eprintln!("{daemon}: {error:#}");
            exit.into()
        }
    }
}
