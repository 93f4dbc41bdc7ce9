//! The service itself.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// Whether the database answers.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Health {
    /// The result.
    pub status: HealthStatus,
    /// The level of Shlink's API that clients may expect.
    pub version: &'static str,
    /// Where to read more.
    pub links: HealthLinks,
}

/// The result of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HealthStatus {
    /// The database answers.
    Pass,
    /// The database does not answer.
    Fail,
}

/// Where to read more about the API.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct HealthLinks {
    /// The authors of the API.
    pub about: &'static str,
    /// Their program.
    pub project: &'static str,
}

/// The schema of the API's own description.
pub struct OpenApi;

impl JsonSchema for OpenApi {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OpenApi".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object", "description": "A document of OpenAPI 3.1.", "x-addition": true,
            "required": ["openapi", "info", "paths"],
            "properties": {
                "openapi": { "type": "string" }, "info": { "type": "object" }, "paths": { "type": "object" },
            },
            "additionalProperties": true,
        })
    }
}
