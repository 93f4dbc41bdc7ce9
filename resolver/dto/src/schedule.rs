//! Edits of links on schedule. The body of one is [`NewScheduledEdit`](super::NewScheduledEdit).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Data, DateTime};

/// An edit of a link that is made at a moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct ScheduledEdit<'a> {
    /// The id.
    pub id: i64,
    /// When the edit is made.
    pub scheduled_for: DateTime,
    /// The fields that it sets, each with its value; null clears one. `hasPassword` stands for a
    /// password.
    pub fields: Map<String, Value>,
    /// The name of the API key that scheduled it.
    pub api_key: Option<&'a str>,
    /// Why the edit was not made, for people; null before its moment.
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
