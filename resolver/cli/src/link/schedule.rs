//! `resolver link schedule add|list|cancel`: scheduled edits of a link.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use ureq::http::Method;

use super::{
    args::LinkName,
    body::{password, sent},
    domain_query,
    fields::LinkEdits,
};
use crate::{
    Error,
    args::{ServerArgs, ShowArgs, TableArgs},
    audit::value,
    client::{Call, NOTHING_TO_CHANGE, Query, Server, wrong},
    table::{List, printable, text, time},
};

const SCHEDULE: &str = "schedule";

#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Schedule an edit of a link. Fields without a flag stay unchanged.
    Add(Box<ScheduleArgs>),
    /// List the scheduled edits of a link, with those that failed.
    List {
        #[command(flatten)]
        name: LinkName,
        #[command(flatten)]
        table: TableArgs,
    },
    /// Cancel a scheduled edit, or remove one that failed.
    Cancel {
        /// Id of the edit in resolver link schedule list.
        id: u64,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Clone, Debug, Args)]
pub struct ScheduleArgs {
    #[command(flatten)]
    pub name: LinkName,
    /// Time of the edit: 2026-11-22T10:00:00+00:00, or a date. Without an offset or a zone such as
    /// [Europe/Berlin] it is in the server's time zone.
    #[arg(long, value_name = "TIME")]
    pub at: String,
    #[command(flatten)]
    pub edits: LinkEdits,
    #[command(flatten)]
    pub show: ShowArgs,
}

const LIST: List = List {
    at: "/scheduledEdits/data",
    empty: "no scheduled edits",
    fields: &[
        ("id", true, |edit| text(&edit["id"])),
        ("at (UTC)", true, |edit| time(&edit["scheduledFor"])),
        ("key", true, |edit| text(&edit["apiKey"])),
        ("sets", false, sets),
        ("failed", false, |edit| text(&edit["failure"])),
    ],
    below: |_| String::new(),
};

pub(super) async fn run(command: ScheduleCommand) -> Result<String, Error> {
    match command {
        ScheduleCommand::Add(args) => {
            let body = body(&args, password(&args.edits.setters)?)
                .ok_or_else(|| wrong("CODE", &args.name.code, NOTHING_TO_CHANGE))?;
            let call =
                Call { query: query(&args.name), ..Call::send(Method::POST, SCHEDULE.to_owned(), body) };
            Server::show(&args.show, call, "/id", |edit| {
                format!("{}: scheduled for {}\n", text(&edit["id"]), text(&edit["scheduledFor"]))
            })
            .await
        }
        ScheduleCommand::List { name, table } => {
            Server::list(&table, Call::read(SCHEDULE.to_owned(), query(&name)), &LIST).await
        }
        ScheduleCommand::Cancel { id, server } => {
            let call = Call::write(Method::DELETE, format!("{SCHEDULE}/{id}"), Vec::new());
            Server::new(&server)?.call(call).await?;
            Ok(format!("{id}: cancelled\n"))
        }
    }
}

fn query(name: &LinkName) -> Query {
    let code = vec![("shortCode", name.code.clone())];
    [code, domain_query(name)].concat()
}

/// Returns the body of a call that schedules an edit; `None` if it changes nothing.
fn body(args: &ScheduleArgs, password: Option<String>) -> Option<Value> {
    let mut body = sent(&args.edits.fields(password));
    if body.as_object()?.is_empty() {
        return None;
    }
    body["scheduledFor"] = json!(args.at);
    Some(body)
}

/// Formats the fields that an edit sets.
fn sets(edit: &Value) -> String {
    let fields = edit["fields"].as_object().into_iter().flatten();
    let fields: Vec<String> = fields.map(|(name, set)| format!("{name}: {}", value(set))).collect();
    printable(&fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{super::args::LinkCommand, *};
    use crate::{Command, command_line};

    fn body_of(args: &str) -> Option<Value> {
        let args: Vec<&str> = "link schedule add".split(' ').chain(args.split(' ')).collect();
        match command_line::parse(&args) {
            Ok(Command::Link(LinkCommand::Schedule(ScheduleCommand::Add(args)))) => body(&args, None),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_edit_has_a_moment_and_at_least_one_field() {
        assert_eq!(
            body_of("abc --at 2030-01-01 --long-url https://e.test/ --no-title --disable"),
            Some(json!({
                "longUrl": "https://e.test/", "title": null, "enabled": false, "scheduledFor": "2030-01-01",
            }))
        );
        assert_eq!(body_of("abc --at 2030-01-01"), None);
    }

    #[test]
    fn a_list_says_what_is_set_when_and_what_has_failed() {
        let edits = json!([
            { "id": 7, "scheduledFor": "2030-01-01T00:00:00+00:00", "apiKey": "ci", "failure": null,
              "fields": { "title": null, "tags": ["a", "b"], "enabled": false } },
            { "id": 8, "scheduledFor": "2030-01-02T00:00:00+00:00", "apiKey": "ci", "failure": "Why.",
              "fields": { "hasPassword": true } },
        ]);
        let table = LIST.format(&json!({ "scheduledEdits": { "data": edits } }), 100);
        let lines: Vec<&str> = table.lines().collect();
        let sets = "7   2030-01-01 00:00:00  ci   title: none, tags: a b, enabled: no";
        assert!(lines[0].starts_with("id  at (UTC)"), "{table}");
        assert!(lines[1].starts_with(sets), "{table}");
        assert!(lines[2].ends_with("Why.") && lines.len() == 3, "{table}");
        assert_eq!(LIST.format(&json!({ "scheduledEdits": { "data": [] } }), 100), "no scheduled edits\n");
    }
}
