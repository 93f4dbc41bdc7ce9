//! The history of a link on its page, and the form that undoes an edit.

use app::find_link::LinkName;
use links::audit::{Action, Entry, separate_name};
use serde_json::Map;

use super::audit::{Change, changes};
use crate::{context::Context, form::Form};

/// Entries on the page of a link.
const SHOWN: usize = 20;
/// The field of a query with the version that an edit has made, which can be undone.
pub(super) const UNDO: &str = "undo";

/// Writes the version that an edit has made as fields of a query.
pub(super) fn version_field(version: u64) -> Form {
    Form(vec![(UNDO.to_owned(), version.to_string())])
}

/// Reads the version that an edit has made.
pub(super) fn version_made(fields: &Form) -> Option<u64> {
    fields.get(UNDO).and_then(|text| text.parse().ok())
}

pub(super) struct History {
    /// The entries, each with what it changed.
    pub(super) entries: Vec<(Entry, Vec<Change>)>,
    /// The entry of the edit that led to this page.
    pub(super) made: Option<i64>,
}

impl History {
    /// Reads the latest entries of a link that the key sees; `version` is the one that led to this
    /// page. If that fails, the page is shown without them: the reason is in the server's log.
    pub(super) async fn of(context: &Context<'_>, name: &LinkName, version: Option<u64>) -> Self {
        let found = context.links.link_history(name, None, context.by).await.unwrap_or_default();
        let (mut entries, mut made, none) = (Vec::new(), None, Map::new());
        for entry in found.into_iter().take(SHOWN) {
            let fields = separate_name(&entry.subject, entry.details.as_ref()).fields;
            let is_made = is_edit(&entry) && version.is_some() && fields["version"].as_u64() == version;
            made = made.or(is_made.then_some(entry.id));
            let changed = changes(&entry, fields.as_object().unwrap_or(&none), context.t);
            entries.push((entry, changed));
        }
        Self { entries, made }
    }
}

pub(super) fn is_edit(entry: &Entry) -> bool {
    entry.action == Action::EditLink.as_str()
}
