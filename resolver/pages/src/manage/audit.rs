//! The audit log: who changed what, with each changed field before and after.

use app::{FieldErrors, find_link::LinkName};
use askama::Template;
use hyper::StatusCode;
use links::{
    REMOVED,
    audit::{Action, Entry, EntryFilter, separate_name},
};
use serde_json::{Map, Value};
use web::Answer;

use super::period::{Period, period_choices, read_period};
use crate::{
    addresses, context::Context, error::PageError, form::Form, frame::Frame, locale::Locale,
    messages::logged_field,
};

pub(super) const PATH: &str = "/manage/audit";
/// Entries on a page: fewer than the use case returns, which tells whether there are older ones.
const PER_PAGE: usize = 50;
const _: () = assert!(PER_PAGE < app::audit::PER_PAGE);
const FIELDS: [&str; 4] = ["action", "key", "object", "created"];
/// The fields of a link that are shown if the entry is not about single fields.
const OF_LINK: [&str; 3] = ["longUrl", "title", "deletedVisits"];

#[derive(Template)]
#[template(path = "manage/audit.html")]
struct AuditPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    entries: Vec<ShownEntry<'a>>,
    is_latest: bool,
    older: Option<String>,
    actions: Vec<(&'static str, String)>,
    period: Period,
    query: Form,
}

struct ShownEntry<'a> {
    entry: &'a Entry,
    object: String,
    /// The domain of a link on another domain than the default one.
    domain: Option<String>,
    address: Option<String>,
    changes: Vec<Change>,
}

pub(super) struct Change {
    pub(super) field: String,
    /// The value before; `None` if the entry does not know it.
    pub(super) before: Option<String>,
    pub(super) after: String,
}

impl AuditPage<'_> {
    fn is_filtered(&self) -> bool {
        let is_filled = |name: &&str| self.query.filled(name).is_some();
        self.period != Period::All || ["action", "key", "object"].iter().any(is_filled)
    }
}

pub(super) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    let query = context.query;
    let filter = read_filter(context).await?;
    let entries = context.links.audit_log(&filter, context.by).await?;
    let frame = context.frame(PATH);
    let on_page = &entries[..entries.len().min(PER_PAGE)];
    let before = on_page.last().filter(|_| entries.len() > PER_PAGE);
    let page = AuditPage {
        context: *context,
        entries: on_page.iter().map(|entry| ShownEntry::new(context, entry)).collect(),
        is_latest: filter.before.is_none(),
        older: before.map(|entry| query.only(&FIELDS).query_with("before", &entry.id.to_string())),
        actions: Action::ALL.map(|action| (action.as_str(), action_text(action.as_str(), frame.t))).to_vec(),
        period: read_period(query, "created", &mut FieldErrors::default()),
        query: query.only(&FIELDS),
        frame,
    };
    Ok(context.page(StatusCode::OK, &page))
}

/// Reads the query: action, API key, object, period, and the entry that the page ends before.
async fn read_filter(context: &Context<'_>) -> Result<EntryFilter, PageError> {
    let (query, api) = (context.query, &context.pages.api);
    let mut wrong = FieldErrors::default();
    let period = read_period(query, "created", &mut wrong);
    let (since, until) = period.bounds(api.domain_cache.now(), &api.time_zone);
    let object = match query.owned("object") {
        Some(name) => Some(context.links.audit_object(name, context.by).await?),
        None => None,
    };
    let filter = EntryFilter {
        before: query.read("before", "no number of an entry", &mut wrong, |text| text.parse().ok()),
        action: query.read("action", "no name of an action", &mut wrong, Action::parse),
        by_name: query.owned("key"),
        object,
        since,
        until,
    };
    wrong.finish()?;
    Ok(filter)
}

impl<'a> ShownEntry<'a> {
    /// Shows an entry. Its object has the name that visitors know.
    fn new(context: &Context<'_>, entry: &'a Entry) -> Self {
        let (t, api) = (context.t, &context.pages.api);
        let (object, domain, address, details) = if entry.is_of_link() {
            let link = separate_name(&entry.subject, entry.details.as_ref());
            let name = link.slug.or_else(|| link.id.and_then(|id| api.lookup.name(id, None)));
            let domain = api.domain_cache.shown_name(link.domain);
            let is_gone = entry.action == Action::DeleteLink.as_str() || domain.as_deref() == Some(REMOVED);
            let address = name.as_deref().filter(|_| !is_gone);
            let named = |code: &str| LinkName { code: code.to_owned(), domain: domain.clone() };
            let address = address.map(|code| addresses::link_page(&named(code)));
            // An entry of a keyspace that is not known any more keeps its number.
            (name.unwrap_or_else(|| entry.subject.clone()), domain, address, Some(link.fields))
        } else {
            let is_orphans = entry.action == Action::DeleteOrphanVisits.as_str();
            let name = if is_orphans { t.text("audit-orphans") } else { entry.subject.clone() };
            (name, None, None, entry.details.clone())
        };
        let members = if let Some(Value::Object(members)) = details { members } else { Map::new() };
        Self { entry, object, domain, address, changes: changes(entry, &members, t) }
    }
}

/// Returns an action in words. One that the language has no text for stays as it is.
pub(super) fn action_text(action: &str, t: &Locale) -> String {
    t.try_text(&format!("audit-{action}")).unwrap_or_else(|| action.to_owned())
}

/// Returns the fields that an entry is about: those that changed, or else what it tells.
pub(super) fn changes(entry: &Entry, details: &Map<String, Value>, t: &Locale) -> Vec<Change> {
    if entry.action == Action::RenameTag.as_str() {
        let after = details.get("name").map_or_else(String::new, |name| text(name, t));
        return vec![Change { field: t.text("field-tag"), before: Some(entry.subject.clone()), after }];
    }
    let change = |(name, value): (&String, &Value)| match (value.get("from"), value.get("to")) {
        (Some(from), Some(to)) => {
            Change { field: logged_field(name, t), before: Some(text(from, t)), after: text(to, t) }
        }
        _ => Change { field: logged_field(name, t), before: None, after: text(value, t) },
    };
    match details.get("changed").and_then(Value::as_object) {
        // The version changes with every edit.
        Some(changed) => changed.iter().filter(|(name, _)| *name != "version").map(change).collect(),
        None => {
            let is_told = |name: &str| !entry.is_of_link() || OF_LINK.contains(&name);
            details.iter().filter(|(name, _)| is_told(name)).map(change).collect()
        }
    }
}

/// Returns a value of the log in words.
pub(super) fn text(value: &Value, t: &Locale) -> String {
    match value {
        Value::Null => t.text("audit-none"),
        Value::Bool(true) => t.text("audit-yes"),
        Value::Bool(false) => t.text("audit-no"),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => t.text("audit-none"),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use links::api_key::OPERATOR;
    use serde_json::json;

    use super::*;
    use crate::locale::english;

    fn told(action: Action, subject: &str, details: Value) -> Vec<(String, Option<String>, String)> {
        let entry = Entry {
            id: 1,
            at: Timestamp::UNIX_EPOCH,
            by: OPERATOR,
            by_name: None,
            action: action.as_str().to_owned(),
            subject: subject.to_owned(),
            details: None,
        };
        let changes = changes(&entry, details.as_object().unwrap(), english());
        changes.into_iter().map(|Change { field, before, after }| (field, before, after)).collect()
    }

    fn row(field: &str, before: Option<&str>, after: &str) -> (String, Option<String>, String) {
        (field.to_owned(), before.map(str::to_owned), after.to_owned())
    }

    #[test]
    fn changed_fields_are_told_before_and_after() {
        let details = json!({ "longUrl": "https://e.org/", "version": 2, "changed": {
            "title": { "from": null, "to": "T" }, "tags": { "from": [], "to": ["a", "b"] },
            "crawlable": { "from": true, "to": false }, "password": "another", "version": { "from": 1, "to": 2 },
        } });
        assert_eq!(
            told(Action::EditLink, "7", details),
            [
                row("Title", Some("none"), "T"),
                row("Tags", Some("none"), "a, b"),
                row("Crawlers may follow the link", Some("yes"), "no"),
                row("Password", None, "another"),
            ]
        );
    }

    #[test]
    fn other_entries_tell_what_they_know() {
        assert_eq!(
            told(Action::RenameTag, "old", json!({ "name": "new" })),
            [row("Tag", Some("old"), "new")]
        );
        let state = json!({ "longUrl": "https://e.org/", "crawlable": false, "version": 2 });
        assert_eq!(told(Action::DeleteLink, "7", state), [row("Long URL", None, "https://e.org/")]);
        assert_eq!(
            told(Action::SetTarget, "*.org", json!({ "allowed": true })),
            [row("Allowed", None, "yes")]
        );
        assert!(told(Action::CreateKey, "k", json!({})).is_empty());
    }
}
