//! The bodies that have fields of a link: which fields each takes, and their schemas, derived from
//! [`LinkFields`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::LinkFields;
use crate::Ignored;

/// The bodies that take a field. Fields without an entry in [`USES`] are taken by all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    create: bool,
    bulk: bool,
    fill: bool,
    edit: EditUse,
}

/// How an edit uses a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditUse {
    /// The edit changes it.
    Taken,
    /// The edit ignores it. The code of a link never changes, and `move` changes its domain;
    /// Shlink's clients have one form for creates and edits.
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

/// The fields that not all bodies take.
const USES: [(&str, Use); 10] = [
    ("tags", Use::SINGLE),
    ("password", Use::SINGLE),
    ("customSlug", Use::SINGLE_CREATE),
    ("pathPrefix", Use::SINGLE_CREATE),
    ("shortCodeLength", Use::CREATE),
    ("strategy", Use { bulk: false, ..Use::CODE }),
    ("keyspace", Use::CODE),
    ("findIfExists", Use::SINGLE_CREATE),
    ("domain", Use::SINGLE_CREATE),
    ("shortCode", Use::FILL),
];

fn use_of(field: &str) -> Use {
    USES.iter().find(|(name, _)| *name == field).map_or(Use::ALL, |(_, of_bodies)| *of_bodies)
}

impl LinkFields {
    /// Returns how an edit uses the field of this name. Unknown ones count as taken.
    #[must_use]
    pub fn edit_use(name: &str) -> EditUse {
        use_of(name).edit
    }
}

/// Derives the schema of a body from that of all fields: the body has the fields that `keeps`
/// returns, and needs those of `required`.
fn schema_of(
    generator: &mut SchemaGenerator,
    description: &str,
    required: &[&str],
    keeps: impl Fn(Use, Value) -> Option<Value>,
) -> Schema {
    let mut schema = LinkFields::json_schema(generator);
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        let kept = std::mem::take(fields).into_iter().filter_map(|(name, field)| {
            let mut field = keeps(use_of(&name), field)?;
            if required.contains(&name.as_str()) {
                field["type"] = json!("string");
            }
            Some((name, field))
        });
        *fields = kept.collect();
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
    |generator| {
        let keeps = |of: Use, field| of.create.then_some(field);
        schema_of(generator, "A link to be created.", &["longUrl"], keeps)
    }
);

body!(
    /// The schema of an edit's body.
    ShortUrlEdit,
    |generator| {
        let ignored = Ignored::json_schema(generator).to_value();
        let keeps = |of: Use, field| match of.edit {
            EditUse::Taken => Some(field),
            EditUse::Ignored => Some(ignored.clone()),
            EditUse::Refused => None,
        };
        schema_of(generator, "A partial update of a link.", &[], keeps)
    }
);

body!(
    /// The schema of an item of a bulk create.
    BatchItem,
    |generator| {
        let description = "One of many links to be created. Its code comes from the default keyspace.";
        let keeps = |of: Use, field| of.bulk.then_some(field);
        addition(schema_of(generator, description, &["longUrl"], keeps))
    }
);

body!(
    /// The schema of an item of a reservation's fill.
    FillItem,
    |generator| {
        let description = "A link to be created under a reserved code.";
        let keeps = |of: Use, field| of.fill.then_some(field);
        addition(schema_of(generator, description, &["longUrl", "shortCode"], keeps))
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
        assert!(USES.iter().all(|(name, _)| all.contains_key(*name)));
        let new = fields_of::<NewShortUrl>();
        assert_eq!(new["longUrl"]["type"], "string");
        assert!(new.contains_key("customSlug") && !new.contains_key("shortCode"));
        let edit = fields_of::<ShortUrlEdit>();
        assert_eq!(edit["longUrl"]["type"], json!(["string", "null"]));
        assert_eq!(edit["customSlug"]["deprecated"], true);
        assert!(!edit.contains_key("keyspace") && edit["tags"]["deprecated"].is_null());
        assert_eq!(LinkFields::edit_use("shortUrl"), EditUse::Taken, "ignored whatever its value");
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
