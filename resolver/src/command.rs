//! The subcommands other than `serve`.

use cli::Output;

use crate::{
    Error, completions,
    config::{Command, ConfigCommand},
    config_check,
};

/// Runs a subcommand, and returns its output.
///
/// # Errors
/// Returns an error if the configuration is wrong or the subcommand fails.
pub async fn run(command: Command) -> Result<Output, Error> {
    match command {
        Command::Serve(_) => Ok(String::new().into()),
        Command::Other(command) => Ok(cli::run(*command).await?),
        Command::Completions { shell } => Ok(completions::script(shell).into()),
        Command::Config(ConfigCommand::Check(args)) => Ok(config_check::run(&args)?.into()),
    }
}
