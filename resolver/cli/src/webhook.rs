//! `resolver webhook create|list|show|delete|enable|disable|rotate|deliveries|redeliver|test`:
//! manages the webhooks of a running server.

mod table;

use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::{
    client::{Call, Server},
    json_text,
};
use crate::{
    Error,
    args::{
        ServerArgs, WebhookArgs, WebhookCommand, WebhookCreateArgs, WebhookDeliveriesArgs, WebhookListArgs,
        WebhookRedeliverArgs,
    },
};

/// The path of all webhooks.
const WEBHOOKS: &str = "webhooks";

/// Runs a subcommand, and returns its output.
pub(super) async fn run(command: WebhookCommand) -> Result<String, Error> {
    match command {
        WebhookCommand::Create(args) => create(&args).await,
        WebhookCommand::List(args) => list(&args).await,
        WebhookCommand::Show(args) => one(&args, Call::read(path_of(args.id), Vec::new())).await,
        WebhookCommand::Delete(args) => delete(&args).await,
        WebhookCommand::Enable(args) => set_enabled(&args, true).await,
        WebhookCommand::Disable(args) => set_enabled(&args, false).await,
        WebhookCommand::Rotate(args) => one(&args, post(format!("{}/rotate", path_of(args.id)))).await,
        WebhookCommand::Deliveries(args) => deliveries(&args).await,
        WebhookCommand::Redeliver(args) => redeliver(&args).await,
        WebhookCommand::Test(args) => {
            queued(&args.server, post(format!("{}/test", path_of(args.id))), args.json).await
        }
    }
}

async fn create(args: &WebhookCreateArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let call = Call { body: Some(body(args)), ..post(WEBHOOKS.to_owned()) };
    let webhook = server.ask(call).await?;
    if !webhook["secret"].is_string() {
        return Err(server.foreign().into());
    }
    Ok(if args.json { json_text::pretty(&webhook) } else { table::webhook(&webhook) })
}

fn body(args: &WebhookCreateArgs) -> Value {
    let mut body = Map::new();
    body.insert("url".to_owned(), json!(args.url));
    body.insert("events".to_owned(), json!(args.events));
    for (name, value) in [
        ("domain", &args.domain),
        ("tag", &args.tag),
        ("shortCode", &args.link),
        ("description", &args.description),
    ] {
        if let Some(value) = value {
            body.insert(name.to_owned(), json!(value));
        }
    }
    Value::Object(body)
}

async fn list(args: &WebhookListArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let answer = server.ask(Call::read(WEBHOOKS.to_owned(), Vec::new())).await?;
    let webhooks = answer["webhooks"]["data"].as_array().ok_or_else(|| server.foreign())?;
    Ok(if args.json { json_text::pretty(&answer) } else { table::list(webhooks, args.table.width) })
}

async fn delete(args: &WebhookArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    server.call(Call::write(Method::DELETE, path_of(args.id), Vec::new())).await?;
    Ok(format!("{}: deleted\n", args.id))
}

async fn set_enabled(args: &WebhookArgs, is_enabled: bool) -> Result<String, Error> {
    let call = Call::write(Method::PATCH, path_of(args.id), Vec::new());
    one(args, Call { body: Some(json!({ "enabled": is_enabled })), ..call }).await
}

/// Makes a call that is answered with a webhook, and shows it.
async fn one(args: &WebhookArgs, call: Call) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let webhook = server.ask(call).await?;
    if !webhook["url"].is_string() {
        return Err(server.foreign().into());
    }
    Ok(if args.json { json_text::pretty(&webhook) } else { table::webhook(&webhook) })
}

async fn deliveries(args: &WebhookDeliveriesArgs) -> Result<String, Error> {
    let server = Server::new(&args.server)?;
    let query = args.before.map(|before| ("before", before.to_string())).into_iter().collect();
    let answer = server.ask(Call::read(format!("{}/deliveries", path_of(args.id)), query)).await?;
    let found = answer["deliveries"]["data"].as_array().ok_or_else(|| server.foreign())?;
    if args.json {
        return Ok(json_text::pretty(&answer));
    }
    let next = answer["deliveries"]["before"].as_i64();
    let more = next.map_or_else(String::new, |next| format!("earlier deliveries: --before {next}\n"));
    Ok(table::deliveries(found, args.table.width) + &more)
}

async fn redeliver(args: &WebhookRedeliverArgs) -> Result<String, Error> {
    let path = format!("{}/deliveries/{}/redeliver", path_of(args.id), args.delivery);
    queued(&args.server, post(path), args.json).await
}

/// Makes a call that is answered with a delivery, and shows its id.
async fn queued(server: &ServerArgs, call: Call, is_json: bool) -> Result<String, Error> {
    let server = Server::new(server)?;
    let delivery = server.ask(call).await?;
    let id = delivery["id"].as_i64().ok_or_else(|| server.foreign())?;
    Ok(if is_json { json_text::pretty(&delivery) } else { format!("delivery {id}: queued\n") })
}

fn post(path: String) -> Call {
    Call::write(Method::POST, path, Vec::new())
}

fn path_of(id: u64) -> String {
    format!("{WEBHOOKS}/{id}")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{Command, CommandLine};

    #[test]
    fn a_create_sends_the_fields_that_were_given() {
        let parse = |flags: &[&str]| {
            let args = [&["resolver", "webhook", "create", "https://a.b/", "--api-key", "k"], flags].concat();
            match CommandLine::try_parse_from(args).map(|line| line.command) {
                Ok(Some(Command::Webhook(WebhookCommand::Create(args)))) => Some(body(&args)),
                _ => None,
            }
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
}
