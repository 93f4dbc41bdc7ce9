//! Arguments of `resolver api-key`.

use std::time::Duration;

use clap::Subcommand;
use daemon::{parse_duration, parse_duration_or_zero};
use links::scope::Scopes;

use super::DatabaseArgs;

/// Subcommands of `resolver api-key`.
#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Create an API key and print it. Only its hash is stored, so it cannot be shown again.
    Create {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// Scopes of the key, separated by commas: create, read, edit, delete, visits, reserve,
        /// domains (to add domains), or admin for everything.
        #[arg(long, default_value = "admin")]
        scopes: Scopes,
        /// Let the key expire after this time, such as 90d. Never if absent.
        #[arg(long, value_parser = parse_duration, value_name = "TIME")]
        expires_in: Option<Duration>,
        /// Limit the key to the links of this domain.
        #[arg(long, value_name = "DOMAIN")]
        domain: Option<String>,
        /// Limit the key to the links that it has created.
        #[arg(long)]
        own_links_only: bool,
        /// Hide visits that no link redirected from the key.
        #[arg(long)]
        no_orphan_visits: bool,
        /// Maximum number of calls per minute with this key, instead of calls-per-key of the server's
        /// --limit; 0 for no limit.
        #[arg(long, value_name = "COUNT")]
        calls_per_minute: Option<u32>,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List all API keys.
    List {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Replace the secret of an API key and print the new one. Its links and limits stay.
    Rotate {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// Keep the old secret valid for this long, so that clients can be changed one after the
        /// other.
        #[arg(long, default_value = "0s", value_parser = parse_duration_or_zero, value_name = "TIME")]
        keep_old_for: Duration,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke an API key. Resolvers refuse it within a second.
    Revoke {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
}
