//! `resolver webhook create|list|show|delete|enable|disable|rotate|deliveries|redeliver|test`:
//! manages the webhooks of a running server.

use clap::{Args, Subcommand, builder::NonEmptyStringValueParser};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::{
    Error,
    args::{ShowArgs, TableArgs},
    client::{Call, Server, given, maybe},
    table::{List, earlier, pairs, text, time},
};

const WEBHOOKS: &str = "webhooks";

/// Subcommands of `resolver webhook`. All of them require an admin's key without limits.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Create a webhook and print it with its secret, which cannot be shown again.
    Create(WebhookCreateArgs),
    /// List webhooks.
    List(TableArgs),
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
    Deliveries {
        /// Id of the webhook.
        id: u64,
        /// Show only deliveries before this one: the last line of the page before names it.
        #[arg(long, value_name = "ID")]
        before: Option<u64>,
        #[command(flatten)]
        table: TableArgs,
    },
    /// Send an event again.
    Redeliver {
        #[command(flatten)]
        webhook: WebhookArgs,
        /// Id of the delivery.
        delivery: u64,
    },
    /// Send a test event. Its delivery shows how it went.
    Test(WebhookArgs),
}

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
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Arguments of the subcommands for one webhook.
#[derive(Clone, Debug, Args)]
pub struct WebhookArgs {
    /// Id of the webhook.
    pub id: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

const LIST: List = List {
    at: "/webhooks/data",
    empty: "no webhooks",
    fields: &[
        ("id", true, |webhook| text(&webhook["id"])),
        ("URL", false, |webhook| text(&webhook["url"])),
        ("events", false, |webhook| text(&webhook["events"])),
        ("state", true, |webhook| state(webhook).to_owned()),
        ("dropped", true, |webhook| match webhook["droppedDeliveries"].as_u64() {
            Some(0) | None => String::new(),
            Some(dropped) => dropped.to_string(),
        }),
        ("description", false, |webhook| text(&webhook["description"])),
    ],
    below: |_| String::new(),
};

const DELIVERIES: List = List {
    at: "/deliveries/data",
    empty: "no deliveries",
    fields: &[
        ("id", true, |delivery| text(&delivery["id"])),
        ("created", true, |delivery| time(&delivery["dateCreated"])),
        ("event", true, |delivery| text(&delivery["event"])),
        ("state", true, |delivery| text(&delivery["state"])),
        ("attempts", true, |delivery| text(&delivery["attempts"])),
        ("status", true, |delivery| text(&delivery["lastStatus"])),
        ("error", false, |delivery| text(&delivery["lastError"])),
    ],
    below: |answer| earlier(&answer["deliveries"], "deliveries"),
};

pub(super) async fn run(command: WebhookCommand) -> Result<String, Error> {
    match command {
        WebhookCommand::Create(args) => {
            let call = Call::send(Method::POST, WEBHOOKS.to_owned(), body(&args));
            Server::show(&args.show, call, "/secret", webhook).await
        }
        WebhookCommand::List(args) => {
            Server::list(&args, Call::read(WEBHOOKS.to_owned(), Vec::new()), &LIST).await
        }
        WebhookCommand::Show(args) => one(&args, Call::read(path_of(args.id), Vec::new())).await,
        WebhookCommand::Delete(args) => {
            let call = Call::write(Method::DELETE, path_of(args.id), Vec::new());
            Server::new(&args.show.server)?.call(call).await?;
            Ok(format!("{}: deleted\n", args.id))
        }
        WebhookCommand::Enable(args) => set_enabled(&args, true).await,
        WebhookCommand::Disable(args) => set_enabled(&args, false).await,
        WebhookCommand::Rotate(args) => one(&args, post(args.id, "rotate")).await,
        WebhookCommand::Deliveries { id, before, table } => {
            let call = Call::read(format!("{}/deliveries", path_of(id)), maybe("before", before));
            Server::list(&table, call, &DELIVERIES).await
        }
        WebhookCommand::Redeliver { webhook, delivery } => {
            let call = post(webhook.id, &format!("deliveries/{delivery}/redeliver"));
            Server::show(&webhook.show, call, "/id", queued).await
        }
        WebhookCommand::Test(args) => Server::show(&args.show, post(args.id, "test"), "/id", queued).await,
    }
}

fn body(args: &WebhookCreateArgs) -> Value {
    Value::Object(given([
        ("url", Some(json!(args.url))),
        ("events", Some(json!(args.events))),
        ("domain", args.domain.as_ref().map(|domain| json!(domain))),
        ("tag", args.tag.as_ref().map(|tag| json!(tag))),
        ("shortCode", args.link.as_ref().map(|link| json!(link))),
        ("description", args.description.as_ref().map(|text| json!(text))),
    ]))
}

async fn set_enabled(args: &WebhookArgs, is_enabled: bool) -> Result<String, Error> {
    one(args, Call::send(Method::PATCH, path_of(args.id), json!({ "enabled": is_enabled }))).await
}

/// Makes a call that is answered with a webhook, and shows it.
async fn one(args: &WebhookArgs, call: Call) -> Result<String, Error> {
    Server::show(&args.show, call, "/url", webhook).await
}

fn post(id: u64, what: &str) -> Call {
    Call::write(Method::POST, format!("{}/{what}", path_of(id)), Vec::new())
}

fn path_of(id: u64) -> String {
    format!("{WEBHOOKS}/{id}")
}

fn queued(delivery: &Value) -> String {
    format!("delivery {}: queued\n", text(&delivery["id"]))
}

/// Formats a webhook as a table of two columns. Fields without a value are left out.
fn webhook(webhook: &Value) -> String {
    let field = |name: &str| text(&webhook[name]);
    pairs(&[
        ("id", field("id")),
        ("URL", field("url")),
        ("secret", field("secret")),
        ("former secret until", field("formerSecretUntil")),
        ("events", field("events")),
        ("domain", field("domain")),
        ("tag", field("tag")),
        ("link", field("shortCode")),
        ("description", field("description")),
        ("created", field("dateCreated")),
        ("enabled", field("enabled")),
        ("disabled because", field("disabledReason")),
        ("failing since", field("failingSince")),
        ("dropped", field("droppedDeliveries")),
    ])
}

fn state(webhook: &Value) -> &'static str {
    match (&webhook["enabled"], &webhook["failingSince"]) {
        (Value::Bool(false), _) => "disabled",
        (_, Value::String(_)) => "failing",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, command_line};

    #[test]
    fn a_create_sends_the_fields_that_were_given() {
        let parse = |flags: &[&str]| match command_line::parse(
            &[&["webhook", "create", "https://a.b/"], flags].concat(),
        ) {
            Ok(Command::Webhook(WebhookCommand::Create(args))) => Some(body(&args)),
            _ => None,
        };
        let expected = json!({ "url": "https://a.b/", "events": ["link.created", "link.deleted"] });
        assert_eq!(parse(&["--event", "link.created", "--event", "link.deleted"]), Some(expected));
        let all = ["--event", "e", "--domain", "d", "--tag", "t", "--link", "l", "--description", "x"];
        let expected = json!({
            "url": "https://a.b/", "events": ["e"], "domain": "d", "tag": "t", "shortCode": "l", "description": "x",
        });
        assert_eq!(parse(&all), Some(expected));
        assert_eq!(parse(&[]), None, "a webhook without events would never be called");
    }

    #[test]
    fn a_list_tells_disabled_and_failing_webhooks() {
        let some = json!([
            json!({ "id": 1, "url": "https://a.b/", "events": ["link.created"], "enabled": true,
                    "droppedDeliveries": 0 }),
            json!({ "id": 2, "url": "https://a.c/", "events": [], "enabled": true, "failingSince": "x",
                    "droppedDeliveries": 7 }),
            json!({ "id": 3, "url": "https://a.d/\u{1b}", "enabled": false, "failingSince": "x" }),
        ]);
        let expected = [
            "id  URL            events        state     dropped",
            "1   https://a.b/   link.created",
            "2   https://a.c/                 failing   7",
            "3   https://a.d/\u{FFFD}                disabled",
        ];
        let webhooks = |webhooks: &Value| LIST.format(&json!({ "webhooks": { "data": webhooks } }), 100);
        assert_eq!(webhooks(&some).lines().collect::<Vec<_>>(), expected);
        assert_eq!(webhooks(&json!([])), "no webhooks\n");
    }

    #[test]
    fn a_new_webhook_is_shown_with_its_secret() {
        let shown = webhook(&json!({ "id": 1, "secret": "whsec_x", "events": ["a", "b"], "enabled": true }));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "secret               whsec_x");
        assert_eq!(lines[2], "events               a, b");
    }

    #[test]
    fn deliveries_say_how_the_last_attempt_went() {
        let one = json!({ "id": 4, "dateCreated": "2026-11-25T01:02:03.456Z", "event": "ping", "state": "open",
                          "attempts": 2, "lastStatus": 500, "lastError": "expected 2xx" });
        let deliveries = |some: &Value| DELIVERIES.format(&json!({ "deliveries": { "data": some } }), 100);
        let table = deliveries(&json!([one, null]));
        assert!(
            table.contains("4   2026-11-25 01:02:03  ping   open   2         500     expected 2xx\n"),
            "{table}"
        );
        assert_eq!(deliveries(&json!([])), "no deliveries\n");
    }
}
