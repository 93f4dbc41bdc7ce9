//! `resolver audit`: shows the audit log of a running server.

use clap::Args;
use serde_json::Value;

use crate::{
    Error,
    args::TableArgs,
    client::{Call, Server, maybe},
    table::{List, earlier, printable, text, time},
};

/// The maximum width of a value in the column of changes, in cells. The column is for a quick look;
/// `--json` has the whole values.
const VALUE_CHARS: usize = 60;

#[derive(Clone, Debug, Args)]
pub struct AuditArgs {
    /// Show only entries before the one with this number.
    #[arg(long, value_name = "ID")]
    pub before: Option<i64>,
    #[command(flatten)]
    pub table: TableArgs,
}

const LIST: List = List {
    at: "/audit/data",
    empty: "no entries",
    fields: &[
        ("date", true, |entry| time(&entry["date"])),
        ("key", true, key),
        ("action", true, |entry| text(&entry["action"])),
        ("subject", true, |entry| text(&entry["subject"])),
        ("domain", false, |entry| text(&entry["domain"])),
        ("changed", false, changes),
    ],
    below: |answer| earlier(&answer["audit"], "entries"),
};

/// The entries about one link, with their numbers for `resolver link undo`.
pub(super) const HISTORY: List = List {
    at: "/audit/data",
    empty: "no entries",
    fields: &[
        ("entry", true, |entry| text(&entry["id"])),
        ("date", true, |entry| time(&entry["date"])),
        ("key", true, key),
        ("action", true, |entry| text(&entry["action"])),
        ("changed", false, changes),
    ],
    below: |answer| earlier(&answer["audit"], "entries"),
};

/// Returns a page of the audit log, the latest entry first.
pub(super) async fn run(args: AuditArgs) -> Result<String, Error> {
    Server::list(&args.table, Call::read("audit".to_owned(), maybe("before", args.before)), &LIST).await
}

fn key(entry: &Value) -> String {
    if entry["apiKey"].is_null() { "(operator)".to_owned() } else { text(&entry["apiKey"]) }
}

/// Formats the fields that an entry changed, or all its details if it is not an edit.
fn changes(entry: &Value) -> String {
    let details = &entry["details"];
    let changed = details["changed"].as_object();
    let fields: Vec<String> = match changed {
        Some(changed) => changed
            .iter()
            .filter(|(name, _)| *name != "version")
            .map(|(name, change)| match change.as_object() {
                Some(change) => format!("{name}: {} → {}", value(&change["from"]), value(&change["to"])),
                None => format!("{name}: {}", value(change)),
            })
            .collect(),
        None if entry["action"].as_str().is_some_and(|action| action.ends_with("-link")) => Vec::new(),
        None => {
            let details = details.as_object().into_iter().flatten();
            details.map(|(name, one)| format!("{name}: {}", value(one))).collect()
        }
    };
    printable(&fields.join(", "))
}

/// Formats a value of the log in one line.
pub(super) fn value(value: &Value) -> String {
    let shown = match value {
        Value::Null => "none".to_owned(),
        Value::Array(items) => items.iter().map(self::value).collect::<Vec<_>>().join(" "),
        Value::Object(_) => value.to_string(),
        value => text(value),
    };
    if shown.chars().count() <= VALUE_CHARS {
        shown
    } else {
        shown.chars().take(VALUE_CHARS).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_says_in_words_what_was_changed() {
        let entry = |details| {
            json!({ "date": "2026-11-22T10:00:00+00:00", "apiKey": "ci", "action": "edit-link",
            "subject": "promo", "domain": "s.test", "details": details })
        };
        let table = |entries: Value| LIST.format(&json!({ "audit": { "data": entries } }), 100);
        let edit = entry(
            json!({ "title": "T", "changed": { "title": { "from": null, "to": "T" }, "password": "another",
            "version": { "from": 0, "to": 1 } } }),
        );
        assert_eq!(
            table(json!([edit])),
            "date                 key  action     subject  domain  changed\n\
             2026-11-22 10:00:00  ci   edit-link  promo    s.test  title: none → T, password: another\n"
        );
        let rename = json!({ "action": "rename-tag", "subject": "a", "details": { "to": "b" } });
        assert_eq!((changes(&edit).contains("version"), changes(&rename)), (false, "to: b".to_owned()));
        assert_eq!(
            changes(&entry(json!({ "title": "T" }))),
            "",
            "a deleted link's last state is in the JSON"
        );
        assert_eq!(table(json!([])), "no entries\n");
        let rule = json!({ "rule": { "from": null, "to": { "x": "\u{202E}y\u{9B}" } } });
        assert_eq!(changes(&entry(json!({ "changed": rule }))), "rule: none → {\"x\":\"\u{FFFD}y\u{FFFD}\"}");
    }
}
