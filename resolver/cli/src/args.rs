//! Arguments that several commands have: the database; and of those that call a running server, its
//! address and API key, and the form of the output.

mod database;

use std::{fmt, fs, io, path::Path};

use clap::{Args, builder::PossibleValue};

use crate::{Error, wrong_value};

pub use database::{Database, DatabaseArgs, VisitsStoreArgs};

/// Reads the file of a flag; `-` is the standard input.
pub(crate) fn read_file(flag: &'static str, path: &Path) -> Result<String, Error> {
    let is_stdin = path == Path::new("-");
    let text = if is_stdin { io::read_to_string(io::stdin()) } else { fs::read_to_string(path) };
    text.map_err(|error| wrong_value(flag, path.display(), error))
}

/// The server to call, and the API key for it.
#[derive(Clone, Args)]
pub struct ServerArgs {
    /// URL of the server.
    #[arg(long, env = "RESOLVER_SERVER", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub server: String,
    /// API key. Pass it in the environment to hide it from other users of this machine.
    #[arg(long, env = "RESOLVER_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: String,
}

impl fmt::Debug for ServerArgs {
    /// Formats the arguments without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerArgs").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The server to call, and the form of the output.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The same, for output as a table.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Maximum width of a table's line, in characters.
    #[arg(long, env = "COLUMNS", default_value = "100", value_name = "COUNT", value_parser = line_width)]
    pub width: usize,
    /// The server and the form of the output.
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Returns what a path behind a link's name may do.
pub(crate) fn extra_path_values() -> [PossibleValue; 4] {
    [
        PossibleValue::new("refuse").help("Answer as if there were no such link"),
        PossibleValue::new("ignore").help("Redirect as without it"),
        PossibleValue::new("append").help("Append it to the path of the long URL"),
        PossibleValue::new("fill").help("Put its segments in place of {1} to {9} and {rest} in the long URL"),
    ]
}

/// Parses the width of a line. Shells set COLUMNS to an empty text or 0 without a terminal, so a
/// malformed value means the default instead of an error.
fn line_width(text: &str) -> Result<usize, std::convert::Infallible> {
    let width = text.parse().ok().filter(|width| *width > 0).unwrap_or(100);
    Ok(width.clamp(40, 1_000))
}

#[cfg(test)]
mod tests {
    use links::ExtraPath;

    use super::*;

    #[test]
    fn every_value_of_an_extra_path_can_be_given() {
        assert_eq!(extra_path_values().map(|value| value.get_name().to_owned()), ExtraPath::NAMES);
    }

    #[test]
    fn a_terminal_of_any_width_has_a_table_that_is_bounded() {
        for (text, width) in [
            ("80", 80),
            ("", 100),
            ("0", 100),
            ("-5", 100),
            ("wide", 100),
            ("1", 40),
            ("40", 40),
            ("1001", 1_000),
            ("18446744073709551615", 1_000),
            ("18446744073709551616", 100),
        ] {
            assert_eq!(line_width(text), Ok(width), "{text:?}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let args = ServerArgs { server: "127.0.0.1".to_owned(), api_key: "secret".to_owned() };
        let shown = format!("{args:?}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("secret"), "{shown}");
    }
}
