//! Results of calls for many links.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The result of one item of a bulk create.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct BatchResult {
    /// The outcome.
    pub result: BatchWord,
    /// With `created`: the link's code or slug.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub short_code: Option<String>,
    /// With `created`: the URL that visitors open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub short_url: Option<String>,
    /// With `invalid`: what was expected, by field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub expected: Option<BTreeMap<String, String>>,
}

/// The outcome of one item of a bulk create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum BatchWord {
    /// A link: a new one, or the one that `externalId`, `findIfExists` or the `Idempotency-Key`
    /// finds.
    Created,
    /// Nothing was created, for the reason in `expected`.
    Invalid,
    /// Every code of the keyspace is taken.
    Exhausted,
    /// Another link has the slug.
    Taken,
    /// The database or the issuer of numbers does not answer at the moment, or the key has too many
    /// calls under way. Whether the link was created is unknown.
    Unavailable,
}

/// A result for each item, in their order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct BatchResults {
    /// The results.
    pub results: Vec<BatchResult>,
}

/// The result of one item of a fill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct FillResult {
    /// The code as the item gave it.
    pub short_code: Value,
    /// The outcome.
    pub result: FillWord,
    /// With `stored`: the URL that visitors open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub short_url: Option<String>,
    /// With `invalid`: what was expected, by field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub expected: Option<BTreeMap<String, String>>,
}

/// The outcome of one item of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum FillWord {
    /// The link is stored, by this call or by an earlier copy of it.
    Stored,
    /// Nothing was stored, for the reason in `expected`.
    Invalid,
    /// The code is not of this reservation.
    NotReserved,
    /// The code came before in the same call.
    Repeated,
    /// Another link is stored under the code.
    Conflict,
    /// The link was surely not stored; it may be sent again.
    Failed,
    /// It is unknown whether the link was stored; it may be sent again as it is.
    Unknown,
}

/// A result for each item, in their order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct FillResults {
    /// The results.
    pub results: Vec<FillResult>,
}
