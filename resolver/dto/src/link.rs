//! The fields of a link that a caller sets: one definition for creates, edits, bulk calls, fills of
//! reservations, the command line and the document.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use links::{
    Authority, Block, CODE_LEN_MAX, DESCRIPTION_BYTES, LongUrl, PasswordHash, RedirectStatus, Slug, TAGS_MAX,
    Tag,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Flag, Ignored, Number, Patch, Time, values::inline_schema};

/// The fields of a link that a caller sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LinkFields {
    /// The target: an absolute URL with a scheme that the operator allows, by default http, https,
    /// mailto or tel. It has no user name or password, is not a short link of this service, and the
    /// target rules allow its host. An edit with null leaves it unchanged.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = LongUrl::MAX_LEN))]
    #[schemars(extend("format" = "iri", "examples" = ["https://example.com/page"]))]
    pub long_url: Patch<String>,
    /// All tags of the link. Spaces become dashes, and letters lower case. An edit with null leaves
    /// them unchanged; one with an empty array removes them.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = TAGS_MAX))]
    #[schemars(extend("x-use" = Use::SINGLE))]
    pub tags: Patch<Vec<TagName>>,
    /// The name of the link for people. A longer one is cut after 512 bytes.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub title: Patch<String>,
    /// Whether crawlers may follow the link.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub crawlable: Patch<Flag>,
    /// Whether the visitor's query is merged into the target.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub forward_query: Patch<Flag>,
    /// The visit limit: how many visits are redirected.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(range(max = i64::MAX))]
    pub max_visits: Patch<Number>,
    /// The link does not redirect before this time. RFC 3339, or a date, which means its beginning.
    /// Without an offset it is in the server's time zone, UTC unless the operator configured
    /// another one.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub valid_since: Patch<Time>,
    /// The link does not redirect from this time on. Written like `validSince`.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    pub valid_until: Patch<Time>,
    /// A description for people.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = DESCRIPTION_BYTES), extend("x-addition" = true))]
    pub description: Patch<String>,
    /// Whether the link redirects.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("x-addition" = true))]
    pub enabled: Patch<Flag>,
    /// The status of the link's redirects; null for the server's default.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(with = "StatusNumber", extend("x-addition" = true))]
    pub redirect_status: Patch<Number>,
    /// The password that visitors are asked for, without control characters. Only its hash is
    /// stored, and no answer contains it.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(min = 1, max = PasswordHash::MAX_LEN))]
    #[schemars(extend("format" = "password", "x-addition" = true))]
    #[schemars(extend("x-use" = Use::SINGLE))]
    pub password: Patch<String>,
    /// A slug chosen by the caller, possibly of several segments. Spaces become dashes, and slashes
    /// at its ends are dropped. It takes precedence over the other fields of the code.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = Slug::MAX_LEN), extend("format" = "slug"))]
    #[schemars(extend("x-use" = Use::SINGLE_CREATE))]
    pub custom_slug: Patch<String>,
    /// A prefix of the code. Spaces become dashes. So do slashes, unless the prefix ends in one:
    /// then it consists of segments. The rest of the code is a digest of the long URL.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = Slug::MAX_LEN), extend("format" = "path-prefix"))]
    #[schemars(extend("x-use" = Use::SINGLE_CREATE))]
    pub path_prefix: Patch<String>,
    /// The length of the code. The code comes from the keyspace of that length. Without one, codes
    /// of up to 8 characters are digests, and longer ones are random. Digests have 8 characters by
    /// default.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(range(max = CODE_LEN_MAX))]
    #[schemars(extend("x-use" = Use::CREATE))]
    pub short_code_length: Patch<Number>,
    /// How the code is chosen: `sequence` takes the next number of a keyspace, `hash` a digest of
    /// the long URL.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(with = "StrategyName", extend("x-addition" = true))]
    #[schemars(extend("x-use" = Use { bulk: false, ..Use::CODE }))]
    pub strategy: Patch<String>,
    /// The name of the code's keyspace. It cannot be combined with the strategy `hash` or a prefix.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("format" = "keyspace", "x-addition" = true))]
    #[schemars(extend("x-use" = Use::CODE))]
    pub keyspace: Patch<String>,
    /// Whether a link that exists already for the long URL is returned: one with the given tags,
    /// limits, domain, status and code, and the oldest if there are several. Title, description and
    /// the other flags are not compared. It cannot be combined with a password.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("default" = false))]
    #[schemars(extend("x-use" = Use::SINGLE_CREATE))]
    pub find_if_exists: Patch<Flag>,
    /// The domain, as a host name with or without a port; without it, and with `DEFAULT`, the
    /// default one. An unknown domain is added, which needs the scope `domains`. Keys of one domain
    /// create links on that domain only.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(length(max = Authority::MAX_LEN))]
    #[schemars(extend("format" = "authority", "examples" = ["sho.rt"]))]
    #[schemars(extend("x-use" = Use::SINGLE_CREATE))]
    pub domain: Patch<String>,
    /// One of the reservation's codes.
    #[serde(skip_serializing_if = "Patch::is_absent")]
    #[schemars(extend("x-use" = Use::FILL))]
    pub short_code: Patch<String>,

    /// Ignored, whatever its value: a flag of earlier releases of Shlink, which Shlink's clients
    /// send.
    #[serde(skip_serializing)]
    pub validate_url: Ignored,
    /// Ignored, whatever its value: redirect rules of earlier releases of Shlink, which Shlink's
    /// clients send.
    #[serde(skip_serializing)]
    pub device_long_urls: Ignored,
    /// Ignored, whatever its value: a field of Shlink's web client, which Shlink's clients send.
    #[serde(skip_serializing)]
    pub title_was_auto_resolved: Ignored,
    /// Ignored, whatever its value: a field of answers, which Shlink's clients send.
    #[serde(skip_serializing)]
    pub short_url: Ignored,
    /// Ignored, whatever its value: a field of answers, which Shlink's clients send.
    #[serde(skip_serializing)]
    pub date_created: Ignored,
    /// Ignored, whatever its value: a field of answers of earlier releases of Shlink, which
    /// Shlink's clients send.
    #[serde(skip_serializing)]
    pub visits_count: Ignored,
    /// Ignored, whatever its value: a field of answers, which Shlink's clients send.
    #[serde(skip_serializing)]
    pub visits_summary: Ignored,
    /// Ignored, whatever its value: a field of answers, which Shlink's clients send.
    #[serde(skip_serializing)]
    pub has_redirect_rules: Ignored,
}

/// A tag of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagName(pub String);

/// The schema of a redirect status: a number, or a string of one.
struct StatusNumber;

/// The schema of a way to choose a code.
struct StrategyName;

inline_schema!(StrategyName, json_schema!({ "enum": ["sequence", "hash", null] }));

/// Why an operator takes a link down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true, "required" = ["reason"]))]
pub struct NewTakedown {
    /// The reason, shown to the link's owner.
    #[schemars(with = "String", length(min = 1, max = Block::REASON_BYTES))]
    #[schemars(extend("format" = "reason"))]
    pub reason: Option<String>,
}

/// The schema of a create's body.
pub struct NewShortUrl;

/// The schema of an edit's body.
pub struct ShortUrlEdit;

/// The schema of an item of a bulk create.
pub struct BatchItem;

/// The schema of an item of a reservation's fill.
pub struct FillItem;

/// How the calls use a field. The default is that all of them take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Use {
    create: bool,
    bulk: bool,
    fill: bool,
    edit: EditUse,
}

/// How an edit uses a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditUse {
    /// The edit changes it.
    Taken,
    /// The edit ignores it. Code and domain of a link never change, but Shlink's clients have one
    /// form for creates and edits.
    Ignored,
    /// The edit refuses it.
    Refused,
}

impl Use {
    const ALL: Self = Self { create: true, bulk: true, fill: true, edit: EditUse::Taken };
    const SINGLE: Self = Self { bulk: false, fill: false, ..Self::ALL };
    const CREATE: Self = Self { edit: EditUse::Ignored, ..Self::ALL };
    const SINGLE_CREATE: Self = Self { edit: EditUse::Ignored, ..Self::SINGLE };
    const CODE: Self = Self { edit: EditUse::Refused, ..Self::ALL };
    const FILL: Self = Self { create: false, bulk: false, fill: true, edit: EditUse::Ignored };
}

impl LinkFields {
    /// Returns how an edit uses the field of this name; `None` for an unknown name.
    #[must_use]
    pub fn edit_use(name: &str) -> Option<EditUse> {
        USES.get(name).map(|of_calls| of_calls.edit)
    }
}

/// The use of each field, by its name.
static USES: LazyLock<BTreeMap<String, Use>> = LazyLock::new(|| {
    let mut schema = LinkFields::json_schema(&mut SchemaGenerator::default());
    let mut uses = BTreeMap::new();
    take_uses(&mut schema, |name, of_calls, _| {
        uses.insert(name.to_owned(), of_calls);
        true
    });
    uses
});

/// Takes the use of each field out of the schema. Fields for which `keeps` returns false are
/// removed.
fn take_uses(schema: &mut Schema, mut keeps: impl FnMut(&str, Use, &mut Value) -> bool) {
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    fields.retain(|name, field| {
        let of_calls = field.as_object_mut().and_then(|field| field.remove(USE));
        let of_calls = of_calls.and_then(|value| Use::deserialize(value).ok()).unwrap_or(Use::ALL);
        keeps(name, of_calls, field)
    });
}

const USE: &str = "x-use";
const LONG_URL: &str = "longUrl";

/// Derives the schema of a body from the schema of all fields. The body has the fields for which
/// `keeps` returns true, and needs those of `required`.
fn schema_of(
    generator: &mut SchemaGenerator,
    (description, is_ours): (&str, bool),
    required: &[&str],
    mut keeps: impl FnMut(Use, &mut Value) -> bool,
) -> Schema {
    let mut schema = LinkFields::json_schema(generator);
    take_uses(&mut schema, |name, of_calls, field| {
        let is_kept = keeps(of_calls, field);
        if required.contains(&name) {
            field["type"] = json!("string");
        }
        is_kept
    });
    schema.insert("description".to_owned(), json!(description));
    if is_ours {
        schema.insert("x-addition".to_owned(), json!(true));
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

impl JsonSchema for NewShortUrl {
    fn schema_name() -> Cow<'static, str> {
        "NewShortUrl".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema_of(generator, ("A link to be created.", false), &[LONG_URL], |of_calls, _| of_calls.create)
    }
}

impl JsonSchema for ShortUrlEdit {
    fn schema_name() -> Cow<'static, str> {
        "ShortUrlEdit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ignored = Ignored::json_schema(generator).to_value();
        schema_of(generator, ("A partial update of a link.", false), &[], |of_calls, field| {
            if of_calls.edit == EditUse::Ignored {
                *field = ignored.clone();
            }
            of_calls.edit != EditUse::Refused
        })
    }
}

impl JsonSchema for BatchItem {
    fn schema_name() -> Cow<'static, str> {
        "BatchItem".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "One of many links to be created. Its code comes from the default keyspace.";
        schema_of(generator, (description, true), &[LONG_URL], |of_calls, _| of_calls.bulk)
    }
}

impl JsonSchema for FillItem {
    fn schema_name() -> Cow<'static, str> {
        "FillItem".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "A link to be created under a reserved code.";
        schema_of(generator, (description, true), &[LONG_URL, "shortCode"], |of_calls, _| of_calls.fill)
    }
}

inline_schema!(
    TagName,
    json_schema!({ "type": "string", "format": "tag", "minLength": 1, "maxLength": Tag::MAX_LEN })
);

inline_schema!(StatusNumber, {
    let statuses = (300..400_u16).filter(|status| RedirectStatus::try_from(*status).is_ok());
    let both = statuses.flat_map(|status| [json!(status), json!(status.to_string())]);
    json_schema!({ "enum": both.chain([Value::Null]).collect::<Vec<_>>() })
});

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn fields_of<T: JsonSchema>() -> Map<String, Value> {
        let schema = T::json_schema(&mut SchemaGenerator::default()).to_value();
        schema["properties"].as_object().unwrap().clone()
    }

    #[test]
    fn each_body_has_its_own_part_of_the_fields() {
        let new = fields_of::<NewShortUrl>();
        assert_eq!(new["longUrl"]["type"], "string");
        assert!(new.contains_key("customSlug") && !new.contains_key("shortCode"));
        let edit = fields_of::<ShortUrlEdit>();
        assert_eq!(edit["longUrl"]["type"], json!(["string", "null"]));
        assert_eq!(edit["customSlug"]["deprecated"], true);
        assert!(!edit.contains_key("keyspace") && edit["tags"]["deprecated"].is_null());
        assert_eq!(LinkFields::edit_use("shortUrl"), Some(EditUse::Taken), "ignored whatever its value");
        assert!(!fields_of::<BatchItem>().contains_key("tags"));
        assert_eq!(fields_of::<FillItem>()["shortCode"]["type"], "string");
    }

    #[test]
    fn what_is_absent_is_not_sent() {
        let fields = LinkFields {
            long_url: Patch::Set("https://a.b/".to_owned()),
            title: Patch::Null,
            max_visits: Patch::Set(Number(7)),
            ..LinkFields::default()
        };
        let sent = serde_json::to_value(&fields).unwrap();
        assert_eq!(sent, json!({ "longUrl": "https://a.b/", "title": null, "maxVisits": 7 }));
        assert_eq!(serde_json::from_value::<LinkFields>(sent).unwrap(), fields);
    }
}
