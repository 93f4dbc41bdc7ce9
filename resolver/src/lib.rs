//! The resolver mints short codes, stores links and serves redirects.
//!
//! `ARCHITECTURE.md` has the crates, and the invariants with the files that enforce them.
//!
//! Deliberately absent: no redirect waits for the issuer or for etcd (I9). Only redirects of links
//! with a visit limit write to the store.

mod bootstrap;
mod completions;
pub mod config;
mod config_check;
mod doctor;
mod server;

use std::pin::Pin;

use daemon::{Exit, print};

use config::{Cli, Command, ConfigCommand};

pub use cli::Error;

/// Runs the command, or the server until a signal, and returns the exit code. The future is in a
/// box, because that of an `async fn` would be compiled again in the binary.
pub fn run(cli: Cli) -> Pin<Box<dyn Future<Output = Result<Exit, Error>>>> {
    Box::pin(act(cli))
}

async fn act(cli: Cli) -> Result<Exit, Error> {
    let output = match cli.command {
        None => return server::run(&cli.serve).await,
        Some(Command::Serve(config)) => return server::run(&config).await,
        Some(Command::Other(command)) => ::cli::run(*command).await?,
        Some(Command::Completions { shell }) => completions::script(shell).into(),
        Some(Command::Config(ConfigCommand::Check(args))) => config_check::run(&args)?.into(),
        Some(Command::Doctor(args)) => doctor::run(&args).await,
    };
    print(&output.text)?;
    Ok(output.exit)
}
