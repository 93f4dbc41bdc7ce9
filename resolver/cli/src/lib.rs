//! The resolver's commands, apart from those about its own configuration.
//!
//! 1. `link`, `domain`, `target`, `visits`, `webhook` and `audit` call the REST API of a running
//!    server (`client.rs`).
//! 2. `migrate`, `api-key`, `backup`, `import` and `export` open the database themselves
//!    (`database.rs`).
//!
//! Each command has its arguments and its work in the file of its name. It returns its output as a
//! text, apart from an export to the standard output and progress bars.

pub mod args;
mod audit;
mod backup;
mod client;
pub mod code_key_file;
#[cfg(test)]
mod command_line;
mod database;
mod domain;
mod error;
mod export;
mod import;
pub mod json_text;
mod keys;
mod link;
mod migrate;
mod output;
mod probe;
pub mod table;
mod target;
mod visits;
mod webhook;

use std::pin::Pin;

use clap::Subcommand;

pub use client::ClientError;
pub use database::{open_visits, open_with, wait_for};
pub use error::{Error, wrong_value};
pub use output::Output;
pub use probe::{Probed, probe};

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set up or update the schema of the database. Safe to run at any time and repeatedly.
    Migrate(Box<migrate::MigrateArgs>),
    /// Create, list, rotate and revoke API keys.
    #[command(subcommand)]
    ApiKey(keys::ApiKeyCommand),
    /// Create, show, list, edit and delete links of a running server.
    #[command(subcommand)]
    Link(link::args::LinkCommand),
    /// List, edit and remove the domains of a running server, and set their fallback targets.
    #[command(subcommand)]
    Domain(domain::DomainCommand),
    /// Allow and deny the hosts that links of a running server may lead to.
    #[command(subcommand)]
    Target(target::TargetCommand),
    /// List, count, export and delete the visits of a running server.
    #[command(subcommand)]
    Visits(visits::args::VisitsCommand),
    /// Manage the webhooks of a running server: receivers of events.
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Show the audit log of a running server: its changes, with their time and API key.
    Audit(audit::AuditArgs),
    /// Copy the files of a resolver on SQLite, also while it runs.
    Backup(backup::BackupArgs),
    /// Import links from another system under their codes there.
    Import(import::ImportArgs),
    /// Export all links to a file or the standard output.
    Export(export::ExportArgs),
}

/// Runs a command, and returns its output. The future is in a box, so that it is compiled here
/// once.
pub fn run(command: Command) -> Pin<Box<dyn Future<Output = Result<Output, Error>>>> {
    Box::pin(carry_out(command))
}

async fn carry_out(command: Command) -> Result<Output, Error> {
    let text = match command {
        Command::Migrate(args) => migrate::run(&args).await,
        Command::ApiKey(command) => keys::run(command).await,
        Command::Link(command) => return link::run(command).await,
        Command::Domain(command) => domain::run(command).await,
        Command::Target(command) => target::run(command).await,
        Command::Visits(command) => visits::run(command).await,
        Command::Webhook(command) => webhook::run(command).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Backup(args) => backup::run(args).await,
        Command::Import(args) => return import::run(args).await,
        Command::Export(args) => return export::run(args).await,
    };
    text.map(Output::from)
}
