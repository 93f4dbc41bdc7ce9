//! Webhooks: receivers of events.

use links::{Authority, Tag, webhook::DESCRIPTION_BYTES, webhook::EventKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Backwards, Data, DateTime, Flag, Patch, values::inline_schema};

/// A webhook to be created.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true, "required" = ["url", "events"]))]
pub struct NewWebhook {
    /// The URL that events are sent to, with https. Addresses that are not public are refused
    /// unless the operator allows them.
    #[schemars(with = "String", length(max = 2_048), extend("format" = "iri"))]
    pub url: Option<String>,
    /// The kinds of events.
    #[schemars(with = "EventNames")]
    pub events: Option<Vec<String>>,
    /// Only events of this domain; `DEFAULT` for the default one.
    #[schemars(length(max = Authority::MAX_LEN), extend("format" = "authority", "examples" = ["sho.rt"]))]
    pub domain: Patch<String>,
    /// Only events of links with this tag.
    #[schemars(length(max = Tag::MAX_LEN), extend("format" = "tag"))]
    pub tag: Patch<String>,
    /// Only events of the link with this code, on `domain`.
    #[schemars(extend("format" = "slug"))]
    pub short_code: Patch<String>,
    /// A text for people.
    #[schemars(length(max = DESCRIPTION_BYTES), extend("format" = "line"))]
    pub description: Patch<String>,
}

/// A partial update of a webhook.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct WebhookEdit {
    /// The URL that events are sent to. Null leaves it.
    #[schemars(length(max = 2_048), extend("format" = "iri"))]
    pub url: Patch<String>,
    /// The kinds of events. Null leaves them.
    #[schemars(with = "Patch<EventNames>")]
    pub events: Patch<Vec<String>>,
    /// A text for people; null removes it.
    #[schemars(length(max = DESCRIPTION_BYTES), extend("format" = "line"))]
    pub description: Patch<String>,
    /// Whether the webhook is called. Its open deliveries wait meanwhile, for a week. Null leaves
    /// it.
    pub enabled: Patch<Flag>,
}

/// A webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct Webhook<'a> {
    /// The id.
    pub id: i64,
    /// The URL that events are sent to.
    pub url: &'a str,
    /// The kinds of events.
    pub events: &'a [String],
    /// The domain that the events are limited to; null for all.
    pub domain: Option<&'a str>,
    /// The tag that the events are limited to; null for all, and if the tag was deleted.
    pub tag: Option<&'a str>,
    /// The code of the link that the events are limited to; null for all.
    pub short_code: Option<&'a str>,
    /// A text for people.
    pub description: Option<&'a str>,
    /// When the webhook was created.
    pub date_created: DateTime,
    /// Whether the webhook is called.
    pub enabled: bool,
    /// Why it is not called.
    pub disabled_reason: Option<&'a str>,
    /// Since when all its deliveries have failed.
    pub failing_since: Option<DateTime>,
    /// How many deliveries were dropped, because too many were open.
    pub dropped_deliveries: u64,
    /// Until when the secret before the last rotation signs too.
    pub former_secret_until: Option<DateTime>,
    /// The secret, in the form of the Standard Webhooks specification. Only in answers to a create
    /// and a rotation: it cannot be shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub secret: Option<&'a str>,
}

/// All webhooks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct WebhookList<'a> {
    /// The list.
    pub webhooks: Data<Webhook<'a>>,
}

/// An event on its way to a webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct WebhookDelivery<'a> {
    /// The id.
    pub id: i64,
    /// The `webhook-id` of all its attempts.
    pub message_id: &'a str,
    /// The kind of the event.
    pub event: &'a str,
    /// `open`, `delivered` or `dead`.
    pub state: &'static str,
    /// How many attempts were made, the one under way included.
    pub attempts: u32,
    /// When the delivery was queued.
    pub date_created: DateTime,
    /// When the next attempt is due; null if there is none.
    pub date_due: Option<DateTime>,
    /// When the delivery ended.
    pub date_ended: Option<DateTime>,
    /// The status of the last answer.
    pub last_status: Option<u16>,
    /// Error of the last attempt.
    pub last_error: Option<&'a str>,
    /// The beginning of the last answer's body.
    pub excerpt: Option<&'a str>,
}

/// A page of deliveries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct DeliveryPage<'a> {
    /// The page.
    pub deliveries: Backwards<WebhookDelivery<'a>>,
}

inline_schema!(
    struct EventNames,
    json_schema!({ "type": "array", "minItems": 1, "items": { "type": "string", "enum": EventKind::NAMES } })
);
