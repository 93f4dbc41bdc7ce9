//! The schemas of the bodies that have fields of a link, derived from [`LinkFields`].

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    LinkFields,
    uses::{EditUse, Use},
};
use crate::Ignored;

/// The schema of a create's body.
pub struct NewShortUrl;

/// The schema of an edit's body.
pub struct ShortUrlEdit;

/// The schema of an item of a bulk create.
pub struct BatchItem;

/// The schema of an item of a reservation's fill.
pub struct FillItem;

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
