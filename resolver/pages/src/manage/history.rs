//! The history of a link on its page, and the form that undoes an edit.

use app::find_link::LinkName;
use links::audit::{Action, Entry, separate_name};
use serde_json::Map;

use super::audit::{Change, action_text, changes};
use crate::context::Context;

/// Entries on the page of a link.
const SHOWN: usize = 20;
/// The field of a query with the version that an edit has made, which can be undone.
pub(super) const UNDO: &str = "undo";

pub(super) struct History {
    pub(super) entries: Vec<HistoryEntry>,
    /// The entry of the edit that led to this page.
    pub(super) made: Option<i64>,
}

pub(super) struct HistoryEntry {
    pub(super) id: i64,
    pub(super) at: String,
    pub(super) time: String,
    pub(super) by: Option<String>,
    pub(super) action: String,
    pub(super) changes: Vec<Change>,
    pub(super) is_edit: bool,
    version: Option<u64>,
}

impl History {
    /// Reads the latest entries of a link that the key sees. If that fails, the page is shown
    /// without them: the reason is in the server's log.
    pub(super) async fn of(context: &Context<'_>, name: &LinkName) -> Self {
        let entries = context.links.link_history(name, None, context.by).await.unwrap_or_default();
        let entries = entries.into_iter().take(SHOWN).map(|entry| HistoryEntry::new(context, entry));
        let entries: Vec<HistoryEntry> = entries.collect();
        let version: Option<u64> = context.query.get(UNDO).and_then(|text| text.parse().ok());
        let is_made = |entry: &&HistoryEntry| entry.is_edit && version.is_some() && entry.version == version;
        let made = entries.iter().find(is_made).map(|entry| entry.id);
        Self { entries, made }
    }
}

impl HistoryEntry {
    fn new(context: &Context<'_>, entry: Entry) -> Self {
        let fields = separate_name(&entry.subject, entry.details.as_ref()).fields;
        let none = Map::new();
        Self {
            id: entry.id,
            at: entry.at.to_string(),
            time: context.pages.shown_time(&entry.at),
            action: action_text(&entry.action, context.t),
            changes: changes(&entry, fields.as_object().unwrap_or(&none), context.t),
            is_edit: entry.action == Action::EditLink.as_str(),
            version: fields["version"].as_u64(),
            by: entry.by_name,
        }
    }
}
