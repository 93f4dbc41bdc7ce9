//! `resolver domain import`: gives the domains of a running server the settings of those that
//! another server has listed.
//!
//! Only what differs is sent, so a repeated import changes nothing, and one that failed goes on.
//! Domains and settings that the file does not have stay as they are.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::{DOMAINS, LIST, REDIRECTS, path_of};
use crate::{
    Error,
    args::{TableArgs, read_file},
    client::{Call, Server, maybe},
    json_text,
    table::{List, rows, text},
    wrong_value,
};

/// The members of a listed domain that are no settings of their own.
const NO_SETTINGS: [&str; 3] = ["domain", "isDefault", "redirects"];
/// What `--public-url` decides for the default domain.
const OF_PUBLIC_URL: &str = "protocol";

#[derive(Clone, Debug, Args)]
pub struct DomainImportArgs {
    /// Output of resolver domain list --json; - for the standard input.
    pub file: PathBuf,
    /// Change the domains, instead of only printing what would be changed.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub table: TableArgs,
}

const CHANGES: List = List {
    at: "/changes",
    empty: "no changes",
    fields: &[
        ("domain", true, |change| text(&change["domain"])),
        ("setting", true, |change| text(&change["setting"])),
        ("before", false, |change| shown(&change["before"])),
        ("after", false, |change| shown(&change["after"])),
    ],
    below: |answer| {
        let is_planned = answer["dryRun"] == true && !rows(&answer["changes"]).is_empty();
        if is_planned { "nothing is changed without --yes\n" } else { "" }.to_owned()
    },
};

pub(super) async fn run(args: &DomainImportArgs) -> Result<String, Error> {
    let unreadable = |problem: String| wrong_value("FILE", args.file.display(), problem);
    let file = read_file("FILE", &args.file)?;
    let listed: Value = serde_json::from_str(file.trim_start_matches('\u{feff}'))
        .map_err(|error| unreadable(format!("expected JSON: {error}")))?;
    let wanted = listed.pointer(LIST.at).and_then(Value::as_array);
    let wanted =
        wanted.ok_or_else(|| unreadable("expected the output of resolver domain list --json".to_owned()))?;
    let server = Server::new(&args.table.show.server)?;
    let here = server.ask(Call::read(DOMAINS.to_owned(), maybe("all", Some(true)))).await?;
    let mut changes = Vec::new();
    for wanted in wanted {
        let (name, here) = counterpart(wanted, here.pointer(LIST.at).map(rows).unwrap_or_default());
        let redirects = differences(&wanted["redirects"], &here["redirects"]);
        let mut settings = differences(wanted, &here);
        settings.retain(|name, _| !NO_SETTINGS.contains(&&**name));
        if here["isDefault"] == true {
            settings.remove(OF_PUBLIC_URL);
        }
        for (setting, after) in redirects.iter().chain(&settings) {
            let before = [&here["redirects"], &here].into_iter().find_map(|here| here.get(setting));
            changes.push(json!({ "domain": name, "setting": setting, "before": before, "after": after }));
        }
        if args.yes {
            send(&server, &name, here["domain"].is_null(), redirects, settings).await?;
        }
    }
    let answer = json!({ "changes": changes, "dryRun": !args.yes });
    Ok(if args.table.show.json {
        json_text::pretty(&answer)
    } else {
        CHANGES.format(&answer, args.table.width)
    })
}

/// Returns the name of a domain of the file on this server, and the domain as it is here. The
/// default domain is that of this server, whatever its name.
fn counterpart(wanted: &Value, here: &[Value]) -> (String, Value) {
    let is_meant = |domain: &&Value| match &wanted["isDefault"] {
        Value::Bool(true) => domain["isDefault"] == true,
        _ => domain["domain"] == wanted["domain"],
    };
    let found = here.iter().find(is_meant);
    let name = found.unwrap_or(wanted)["domain"].as_str().unwrap_or_default().to_owned();
    (name, found.cloned().unwrap_or_else(|| json!({ "enabled": true, "trackVisitors": true })))
}

/// Returns the members of an object that another one has otherwise.
fn differences(wanted: &Value, here: &Value) -> Map<String, Value> {
    let members = wanted.as_object().into_iter().flatten();
    let differing = members.filter(|(name, value)| set(value) != here.get(*name).and_then(set));
    differing.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns a setting unless it is as if absent.
fn set(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

/// Changes a domain. The call for the fallback targets adds an unknown one.
async fn send(
    server: &Server,
    name: &str,
    is_new: bool,
    mut redirects: Map<String, Value>,
    settings: Map<String, Value>,
) -> Result<(), Error> {
    if !redirects.is_empty() || is_new && !settings.is_empty() {
        redirects.insert("domain".to_owned(), json!(name));
        let path = format!("{DOMAINS}/{REDIRECTS}");
        server.call(Call::send(Method::PATCH, path, Value::Object(redirects))).await?;
    }
    if !settings.is_empty() {
        server.call(Call::send(Method::PATCH, path_of(name)?, Value::Object(settings))).await?;
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    // The files of app links would be too long.
    if value.is_object() || value.is_array() { "(file)".to_owned() } else { text(value) }
}
