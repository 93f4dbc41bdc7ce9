//! Why a short URL is answered as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Time, values::inline_schema};

/// An example of a visitor's request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["url"]))]
pub struct ExplanationQuery {
    /// The short URL (its scheme is optional) or its path on the default domain, with the query.
    #[schemars(with = "String", length(min = 1), extend("examples" = ["https://sho.rt/abc123?x=1"]))]
    pub url: Option<String>,
    /// The visitor's `User-Agent`; none if absent.
    #[schemars(with = "String")]
    pub user_agent: Option<String>,
    /// The visitor's `Accept-Language`; none if absent.
    #[schemars(with = "String", extend("examples" = ["en-US, de;q=0.5"]))]
    pub accept_language: Option<String>,
    /// The visitor's address; by default the caller's.
    #[schemars(with = "Address")]
    pub ip: Option<String>,
    /// The visitor's country, as two letters of ISO 3166-1; by default that of the address.
    #[schemars(with = "String", regex(pattern = "^[A-Za-z]{2}$"))]
    pub country: Option<String>,
    /// The moment of the visit; by default now. The visits of a limit are those of now.
    #[schemars(with = "Time")]
    pub at: Option<String>,
}

/// Why a short URL is answered as it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct Explanation<'a> {
    /// The steps of the decision, in their order.
    pub steps: Vec<ExplanationStep<'a>>,
    /// What the visitor gets.
    pub answer: ExplainedAnswer<'a>,
}

/// A step of the decision.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplanationStep<'a> {
    /// What is decided: `domain`, `name`, `state`, `rule` and others.
    pub step: &'a str,
    /// What comes of it.
    pub outcome: &'a str,
    /// What it is about, such as a domain, the names that were tried, a rule or a URL; may be
    /// empty.
    pub detail: &'a str,
}

/// The answer that a visitor gets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplainedAnswer<'a> {
    /// The status.
    pub status: u16,
    /// The `Location` of a redirect; null for a page.
    pub location: Option<&'a str>,
    /// The name of a page; null for a redirect.
    pub page: Option<&'a str>,
}

inline_schema!(
    struct Address,
    json_schema!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] })
);
