//! Exit codes, after `sysexits.h`.

use std::{ffi::OsString, process::ExitCode};

use clap::{
    Parser,
    error::{ContextKind, ContextValue},
};

/// The outcome of a daemon or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success, or an orderly shutdown.
    Clean = 0,
    /// Bad configuration.
    Config = 64,
    /// A part of the input was refused, or there was nothing in it. The rest is done.
    Refused = 65,
    /// The link or other object that a command asked a server for does not exist.
    NotFound = 66,
    /// A required server did not answer at start, or something of the deployment is wrong.
    Unavailable = 69,
    /// Any other failure.
    Internal = 70,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Removes invalid values and unexpected arguments from the parser's message if they may contain a
/// password: the address of a database may stand where none is expected.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let may_be_secret = |value: &str| value.contains('@') || value.contains("password=");
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        if matches!(error.get(kind), Some(ContextValue::String(value)) if may_be_secret(value)) {
            error.insert(kind, ContextValue::String("(hidden)".to_owned()));
            error.remove(ContextKind::Suggested);
            error.remove(ContextKind::TrailingArg);
        }
    }
    error
}

/// Parses arguments and environment. `--help` and `--version` arrive as errors from the parser, but
/// end with code 0. Returns the exit code if the process is to end. The parser's message is printed
/// before.
pub fn parse<C: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<C, ExitCode> {
    C::try_parse_from(arguments).map_err(without_secrets).map_err(|error| {
        // If standard error is closed, the message has no other destination.
        let _ = error.print();
        if error.use_stderr() { Exit::Config } else { Exit::Clean }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[arg(long, value_parser = |text: &str| text.parse::<u16>().map_err(|_| "expected a port"))]
        port: u16,
    }

    #[test]
    fn a_value_that_may_contain_a_password_is_not_printed() {
        for (value, shown) in [("postgre://me:secret@db/x", "(hidden)"), ("high", "high")] {
            let error = without_secrets(Flags::try_parse_from(["daemon", "--port", value]).unwrap_err());
            let message = error.render().to_string();
            assert!(message.contains(shown) && !message.contains("secret"), "{message}");
            assert!(message.contains("--port") && message.contains("expected a port"), "{message}");
        }
        for argument in ["postgres://me:secret@db/x", "host=db password=secret"] {
            let error = without_secrets(Flags::try_parse_from(["daemon", argument]).unwrap_err());
            let message = error.render().to_string();
            assert!(message.contains("(hidden)") && !message.contains("secret"), "{message}");
        }
    }
}
