//! What the subcommands take that ask a running server: which one, and how wide their tables may be.

use std::fmt;

use clap::Args;

/// Characters of a line, when nobody says how many the terminal has.
const WIDTH: usize = 100;
/// The narrowest and the widest lines that tables are laid out for.
const WIDTHS: (usize, usize) = (40, 1_000);

/// Which server is asked, and with which key.
#[derive(Clone, Args)]
pub struct ServerArgs {
    /// The server's address.
    #[arg(long, env = "RESOLVER_SERVER", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub server: String,
    /// The API key. In the environment other people on the machine do not see it.
    #[arg(long, env = "RESOLVER_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: String,
}

impl fmt::Debug for ServerArgs {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerArgs").field("server", &self.server).finish_non_exhaustive()
    }
}

/// How tables are laid out.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Characters of a line of the table.
    #[arg(long, env = "COLUMNS", default_value = "100", value_name = "COUNT", value_parser = line_width)]
    pub width: usize,
}

/// Shells leave COLUMNS empty or 0 where there is no terminal, which must not keep a list from being printed.
fn line_width(text: &str) -> Result<usize, std::convert::Infallible> {
    let width = text.parse().ok().filter(|width| *width > 0).unwrap_or(WIDTH);
    Ok(width.clamp(WIDTHS.0, WIDTHS.1))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        server: ServerArgs,
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
        let cli = Cli::try_parse_from(["resolver", "--api-key", "secret"]).unwrap();
        let shown = format!("{cli:?}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("secret"), "{shown}");
    }
}
