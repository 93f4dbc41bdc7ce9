//! The audit log.

use links::audit::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Backwards, DateTime};

/// The edit that is undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct UndoneEdit {
    /// The number of its entry in the link's history; null for the last edit.
    pub entry: Option<i64>,
}

/// A change that was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct AuditEntry<'a> {
    /// The number of the entry, which grows with time.
    pub id: i64,
    /// When the change was made.
    pub date: DateTime,
    /// The name of the API key; null for the operator's command line, and in the history of a link
    /// for the operator who took it down.
    pub api_key: Option<&'a str>,
    /// The kind of change.
    #[schemars(extend("examples" = Action::NAMES))]
    pub action: &'a str,
    /// The object of the change: a link's code, a tag, a domain, a pattern, a key's name; the
    /// network whose visits were erased, or `orphans`.
    pub subject: String,
    /// The domain of a link; null for the default one, `(removed)` for one that was removed.
    pub domain: Option<String>,
    /// The change in detail. For an edited link or domain, `changed` has each changed field with
    /// its value before and after.
    pub details: Option<Value>,
}

/// A page of the log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct AuditPage<'a> {
    /// The page.
    pub audit: Backwards<AuditEntry<'a>>,
}
