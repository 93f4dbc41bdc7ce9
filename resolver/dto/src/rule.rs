//! Redirect rules: other targets for some visitors.

use std::borrow::Cow;

use links::{Browser, CONDITION_TYPES, CONDITIONS_MAX, Country, Device, LongUrl, Protocol, RULES_MAX, Text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Ignored, Patch, ShortUrlName, Time, values::inline_schema};

/// All rules of a link, in the order in which they are tried.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("required" = ["redirectRules"]))]
pub struct NewRedirectRules {
    /// The rules. Each is read as a [`NewRedirectRule`], so that wrong fields of all are reported.
    #[schemars(with = "Vec<NewRedirectRule>", length(max = RULES_MAX))]
    #[schemars(extend("description" = "The rules."))]
    pub redirect_rules: Option<Vec<Value>>,
}

/// Another target, for visitors who meet all conditions; without conditions, for everybody.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("required" = ["longUrl", "conditions"]))]
pub struct NewRedirectRule {
    /// The target, with the same limits as that of a link.
    #[schemars(with = "String", length(max = LongUrl::MAX_LEN))]
    #[schemars(extend("format" = "iri", "examples" = ["https://example.com/page"]))]
    pub long_url: Option<String>,
    /// The conditions. Each is read as a [`NewCondition`], so that wrong fields of all are
    /// reported.
    #[schemars(with = "Vec<NewCondition>", length(max = CONDITIONS_MAX))]
    #[schemars(extend("description" = "The conditions."))]
    pub conditions: Option<Vec<Value>>,
    priority: Ignored,
}

/// A condition that a visitor meets or not.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NewCondition {
    /// The type, one of [`CONDITION_TYPES`].
    pub r#type: Patch<String>,
    /// The name of a query parameter, for the types that need one.
    pub match_key: Patch<String>,
    /// The value to compare with, for the types that need one.
    pub match_value: Patch<String>,
}

/// The rules of a link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedirectRules<'a> {
    /// The target of all other visitors.
    pub default_long_url: &'a str,
    /// The rules, in the order in which they are tried.
    pub redirect_rules: Vec<RedirectRule<'a>>,
}

/// The answer to a change of the rules of a link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ChangedRedirectRules<'a> {
    /// The rules, for a key that may read them.
    Whole(RedirectRules<'a>),
    /// The link's name, for any other key.
    Name(ShortUrlName),
}

/// Another target, for visitors who meet all conditions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedirectRule<'a> {
    /// The target.
    pub long_url: &'a str,
    /// The position among the rules; 1 is tried first.
    #[schemars(range(min = 1))]
    pub priority: usize,
    /// The conditions.
    pub conditions: Vec<Condition>,
}

/// A condition that a visitor meets or not.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The kind of condition.
    #[schemars(with = "ConditionType")]
    pub r#type: String,
    /// The name of a query parameter, for the types that need one.
    pub match_key: Option<String>,
    /// The value to compare with.
    pub match_value: Option<String>,
}

inline_schema!(struct ConditionType, json_schema!({ "enum": CONDITION_TYPES }));

impl JsonSchema for NewCondition {
    fn schema_name() -> Cow<'static, str> {
        "NewCondition".into()
    }

    /// One schema for each type, so that each says what its key and value are.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_type = |kind: &&str| {
            let key = kind.contains("query-param").then(|| text("The name of a query parameter."));
            let value = value_of(kind, generator);
            let mut required = vec!["type"];
            required.extend(key.is_some().then_some("matchKey"));
            required.extend(value.is_some().then_some("matchValue"));
            let unused = || json!({ "type": ["string", "null"], "maxLength": Text::MAX_LEN });
            json!({
                "type": "object",
                "properties": {
                    "type": { "const": kind },
                    "matchKey": key.unwrap_or_else(unused),
                    "matchValue": value.unwrap_or_else(unused),
                },
                "required": required,
                "additionalProperties": false,
            })
        };
        let all: Vec<Value> = CONDITION_TYPES.iter().map(of_type).collect();
        json_schema!({ "description": "A condition that a visitor meets or not.", "oneOf": all })
    }
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": Text::MAX_LEN, "description": description })
}

/// Returns the schema of the value that conditions of a type compare with, if they have one.
fn value_of(kind: &str, generator: &mut SchemaGenerator) -> Option<Value> {
    Some(match kind {
        "device" => json!({ "enum": Device::NAMES }),
        "browser" => json!({ "enum": Browser::NAMES }),
        "language" => text("A language, and a country behind it if it matters: `en`, `en-US`."),
        "query-param" => text("The exact value."),
        "ip-address" => {
            let mut pattern =
                text("An IP address, a network such as `192.0.2.0/24`, or a pattern such as `192.0.*.7`.");
            pattern["format"] = json!("address-pattern");
            pattern
        }
        "geolocation-country-code" => {
            json!({ "enum": countries(), "description": "Two capital letters of ISO 3166-1." })
        }
        "geolocation-city-name" => text("The name of a city."),
        "path" => {
            let mut pattern = text(
                "A pattern of the path behind the link's name, which begins with a slash: `#` stands for \
                 digits, `*` for a part between slashes, and `**` for anything.",
            );
            pattern["format"] = json!("path-pattern");
            pattern
        }
        "scheme" => json!({ "enum": Protocol::NAMES }),
        "before-date" | "after-date" => Time::json_schema(generator).to_value(),
        "share" => json!({
            "type": "string",
            "pattern": "^[1-9][0-9]?$",
            "description": "A percentage of the visitors. Those of all rules of a link are 100 at most.",
        }),
        _ => return None,
    })
}

fn countries() -> Vec<String> {
    let codes = ('A'..='Z').flat_map(|first| ('A'..='Z').map(move |second| format!("{first}{second}")));
    codes.filter(|code| Country::parse(code).is_some()).collect()
}
