//! Arguments of `resolver webhook`.

use clap::{Args, Subcommand, builder::NonEmptyStringValueParser};

use super::client::{ServerArgs, TableArgs};

/// Subcommands of `resolver webhook`. All of them require an admin's key without limits.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Create a webhook and print it with its secret, which cannot be shown again.
    Create(WebhookCreateArgs),
    /// List webhooks.
    List(WebhookListArgs),
    /// Show a webhook.
    Show(WebhookArgs),
    /// Delete a webhook with its deliveries.
    Delete(WebhookArgs),
    /// Call a webhook again. Its open deliveries go on.
    Enable(WebhookArgs),
    /// Stop calling a webhook. Its open deliveries wait for a week.
    Disable(WebhookArgs),
    /// Replace the secret of a webhook and print the new one. The former one signs too for 24
    /// hours.
    Rotate(WebhookArgs),
    /// List the deliveries of a webhook, the latest first.
    Deliveries(WebhookDeliveriesArgs),
    /// Send an event again.
    Redeliver(WebhookRedeliverArgs),
    /// Send a test event. Its delivery shows how it went.
    Test(WebhookArgs),
}

/// Arguments of `resolver webhook create`.
#[derive(Clone, Debug, Args)]
pub struct WebhookCreateArgs {
    /// URL that events are sent to.
    pub url: String,
    /// Kind of events, such as link.created or visits.recorded; can be repeated.
    #[arg(long = "event", value_name = "KIND", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub events: Vec<String>,
    /// Only events of this domain; DEFAULT for the domain of the server's --public-url.
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Only events of links with this tag.
    #[arg(long)]
    pub tag: Option<String>,
    /// Only events of the link with this code, on --domain.
    #[arg(long, value_name = "CODE")]
    pub link: Option<String>,
    /// Text that the list shows.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `resolver webhook list`.
#[derive(Clone, Debug, Args)]
pub struct WebhookListArgs {
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

/// Arguments of the subcommands for one webhook.
#[derive(Clone, Debug, Args)]
pub struct WebhookArgs {
    /// Id of the webhook.
    pub id: u64,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `resolver webhook deliveries`.
#[derive(Clone, Debug, Args)]
pub struct WebhookDeliveriesArgs {
    /// Id of the webhook.
    pub id: u64,
    /// Show only deliveries before this one: the last line of the page before names it.
    #[arg(long, value_name = "ID")]
    pub before: Option<u64>,
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

/// Arguments of `resolver webhook redeliver`.
#[derive(Clone, Debug, Args)]
pub struct WebhookRedeliverArgs {
    /// Id of the webhook.
    pub id: u64,
    /// Id of the delivery.
    pub delivery: u64,
    /// Print the answer as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}
