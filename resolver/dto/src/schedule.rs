//! Scheduled edits of links. The body of one is [`NewScheduledEdit`](super::NewScheduledEdit).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Data, DateTime};

/// A scheduled edit of a link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct ScheduledEdit<'a> {
    /// The id.
    pub id: i64,
    /// When the edit is made.
    pub scheduled_for: DateTime,
    /// The fields that it sets, with their values; null clears a field. A password is shown as
    /// `hasPassword`.
    pub fields: Map<String, Value>,
    /// The name of the API key that scheduled it.
    pub api_key: Option<&'a str>,
    /// Why the edit failed; null if it has not.
    pub failure: Option<&'a str>,
}

/// The scheduled edits of a link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct ScheduledEditList<'a> {
    /// The list.
    pub scheduled_edits: Data<ScheduledEdit<'a>>,
}
