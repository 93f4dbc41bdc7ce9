//! Edits of links on schedule. The body of one is [`NewScheduledEdit`](super::NewScheduledEdit).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Data, DateTime};

/// The query that names the link of a schedule.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["shortCode"]))]
pub struct ScheduleQuery {
    /// The code or slug of the link.
    #[schemars(with = "String", length(min = 1))]
    pub short_code: Option<String>,
    /// The domain of the link; without it, and with `DEFAULT`, the default one.
    pub domain: Option<String>,
}

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
