//! The subcommands other than `serve`.

use crate::{
    Error, completions,
    config::{Command, ConfigCommand},
    config_check,
};

/// Runs a subcommand, and returns its output.
///
/// # Errors
/// Returns an error if the configuration is wrong or the subcommand fails.
pub async fn run(command: Command) -> Result<String, Error> {
    match command {
        Command::Serve(_) => Ok(String::new()),
        Command::Other(command) => Ok(cli::run(command).await?),
        Command::Completions { shell } => Ok(completions::script(shell)),
        Command::Config(ConfigCommand::Check(args)) => Ok(config_check::run(&args)?),
    }
}
