//! The bodies that have fields of a link: which fields each takes, and their schemas, derived from
//! [`LinkFields`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::LinkFields;
use crate::{Ignored, Time};

/// Fields that a fill's items do not have.
const NOT_IN_FILLS: [&str; 8] =
    ["tags", "password", "customSlug", "pathPrefix", "findIfExists", "fetchTitle", "externalId", "domain"];

/// Describes the field `scheduledFor`.
const MOMENT: &str = "When to make the edit: a time in the future, in the format of `validSince`.";

impl LinkFields {
    /// Fields that are ignored, whatever their values: Shlink's clients send fields of answers, of
    /// earlier releases of Shlink and of its web client.
    pub const IGNORED: [&str; 8] = [
        "validateUrl",
        "deviceLongUrls",
        "titleWasAutoResolved",
        "shortUrl",
        "dateCreated",
        "visitsCount",
        "visitsSummary",
        "hasRedirectRules",
    ];
    /// Fields that an edit ignores. `move` changes the domain of a link; Shlink's clients have one
    /// form for creates and edits.
    pub const IGNORED_IN_EDITS: [&str; 5] =
        ["pathPrefix", "shortCodeLength", "findIfExists", "domain", "shortCode"];
    /// Fields that an edit refuses.
    pub const REFUSED_IN_EDITS: [&str; 4] = ["strategy", "keyspace", "fetchTitle", "externalId"];
}

/// Derives the schema of a body from that of all fields: without some, and needing `required`.
fn schema_of(
    generator: &mut SchemaGenerator,
    description: &str,
    required: &[&str],
    is_left_out: impl Fn(&str) -> bool,
) -> Schema {
    let mut schema = LinkFields::json_schema(generator);
    let mut ignored = Ignored::json_schema(generator);
    ignored.insert("writeOnly".to_owned(), json!(true));
    let ignored = ignored.to_value();
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.retain(|name, _| !is_left_out(name));
        for name in required {
            fields[*name]["type"] = json!("string");
        }
        fields.extend(LinkFields::IGNORED.map(|name| (name.to_owned(), ignored.clone())));
    }
    schema.insert("description".to_owned(), json!(description));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn addition(mut schema: Schema) -> Schema {
    schema.insert("x-addition".to_owned(), json!(true));
    schema
}

/// Defines the type that stands for a body, with its schema.
macro_rules! body {
    ($(#[$doc:meta])* $name:ident, |$generator:ident| $schema:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

body!(
    /// The schema of a create's body.
    NewShortUrl,
    |generator| schema_of(generator, "A link to be created.", &["longUrl"], |name| name == "shortCode")
);

body!(
    /// The schema of an edit's body.
    ShortUrlEdit,
    |generator| {
        let is_refused = |name: &str| LinkFields::REFUSED_IN_EDITS.contains(&name);
        let mut schema = schema_of(generator, "A partial update of a link.", &[], is_refused);
        let ignored = Ignored::json_schema(generator).to_value();
        if let Some(fields) = schema.get_mut("properties") {
            LinkFields::IGNORED_IN_EDITS.iter().for_each(|name| fields[name] = ignored.clone());
        }
        schema
    }
);

body!(
    /// The schema of the body of an edit on schedule.
    NewScheduledEdit,
    |generator| {
        let mut schema = ShortUrlEdit::json_schema(generator);
        let mut moment = Time::json_schema(generator);
        moment.insert("description".to_owned(), json!(MOMENT));
        if let Some(Value::Object(fields)) = schema.get_mut("properties") {
            fields.retain(|name, _| name != "customSlug");
            fields.insert("scheduledFor".to_owned(), moment.to_value());
        }
        schema.insert("description".to_owned(), json!("An edit of a link, and when to make it."));
        schema.insert("required".to_owned(), json!(["scheduledFor"]));
        addition(schema)
    }
);

body!(
    /// The schema of an item of a bulk create.
    BatchItem,
    |generator| {
        let description = "One of many links to be created.";
        addition(schema_of(generator, description, &["longUrl"], |name| name == "shortCode"))
    }
);

body!(
    /// The schema of an item of a reservation's fill.
    FillItem,
    |generator| {
        let description = "A link to be created under a reserved code.";
        let is_left_out = |name: &str| NOT_IN_FILLS.contains(&name);
        addition(schema_of(generator, description, &["longUrl", "shortCode"], is_left_out))
    }
);

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::{Number, Patch};

    fn fields_of<T: JsonSchema>() -> Map<String, Value> {
        let schema = T::json_schema(&mut SchemaGenerator::default()).to_value();
        schema["properties"].as_object().unwrap().clone()
    }

    #[test]
    fn each_body_has_its_own_part_of_the_fields() {
        let all = fields_of::<LinkFields>();
        let mut named =
            NOT_IN_FILLS.iter().chain(&LinkFields::IGNORED_IN_EDITS).chain(&LinkFields::REFUSED_IN_EDITS);
        assert!(named.all(|name| all.contains_key(*name)));
        let new = fields_of::<NewShortUrl>();
        assert_eq!(new["longUrl"]["type"], "string");
        assert!(new.contains_key("customSlug") && !new.contains_key("shortCode"));
        let edit = fields_of::<ShortUrlEdit>();
        assert_eq!(edit["longUrl"]["type"], json!(["string", "null"]));
        assert_eq!(edit["pathPrefix"]["deprecated"], true);
        assert!(!edit.contains_key("keyspace") && edit["customSlug"]["deprecated"].is_null());
        assert_eq!(edit["shortUrl"]["deprecated"], true);
        let scheduled = fields_of::<NewScheduledEdit>();
        assert!(scheduled.contains_key("scheduledFor") && !scheduled.contains_key("customSlug"));
        let item = fields_of::<BatchItem>();
        assert!(["customSlug", "tags", "domain"].iter().all(|name| item.contains_key(*name)));
        assert!(!item.contains_key("shortCode"));
        let fill = fields_of::<FillItem>();
        assert_eq!(fill["shortCode"]["type"], "string");
        assert!(!fill.contains_key("tags"));
    }

    #[test]
    fn absent_null_and_set_are_three_things_and_come_back_as_they_went() {
        let fields = LinkFields {
            long_url: Patch::Set("https://a.b/".to_owned()),
            title: Patch::Null,
            description: Patch::Set(String::new()),
            max_visits: Patch::Set(Number(7)),
            ..LinkFields::default()
        };
        let sent = serde_json::to_value(&fields).unwrap();
        assert_eq!(
            sent,
            json!({ "longUrl": "https://a.b/", "title": null, "description": "", "maxVisits": 7 })
        );
        assert_eq!(serde_json::from_value::<LinkFields>(sent).unwrap(), fields);
    }
}
