//! Arguments of `resolver audit`.

use clap::Args;

use super::client::{ServerArgs, TableArgs};

/// Arguments of `resolver audit`.
#[derive(Clone, Debug, Args)]
pub struct AuditArgs {
    /// Show only entries before the one with this number.
    #[arg(long, value_name = "ID")]
    pub before: Option<i64>,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The table.
    #[command(flatten)]
    pub table: TableArgs,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}
