//! Edits of links on schedule: made at a moment, and not at once.
//!
//! 1. An edit is checked when it is scheduled, and again when it is made, with the rights that its
//!    API key has by then.
//! 2. It is stored as the fields that it sets, under their names in the API; of a password only the
//!    hash. A name, a domain and a takedown are not changed on schedule.
//! 3. An edit that cannot be made stays with the reason until it is cancelled, or its link is
//!    deleted.

use std::fmt;

use codes::LinkId;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{DetailsEdit, Edit, api_key::ApiKeyId, audit::set_field};

/// Name under which the hash of a password is stored.
const PASSWORD: &str = "password";
/// Name under which readers see whether a password is set.
const HAS_PASSWORD: &str = "hasPassword";

codes::stored_number! {
    /// Number of a scheduled edit in the database.
    pub struct ScheduledEditId(i64);
}

/// An edit of a link that is made at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledEdit {
    /// Number.
    pub id: ScheduledEditId,
    /// Link that is edited.
    pub link: LinkId,
    /// Moment from which the edit is due.
    pub due_at: Timestamp,
    /// What it sets.
    pub fields: ScheduledFields,
    /// API key that scheduled it and that makes it.
    pub by: ApiKeyId,
    /// Name of that key.
    pub by_name: Option<String>,
    /// Why it was not made; `None` as long as it has not been tried.
    pub failure: Option<String>,
}

/// The fields that a scheduled edit sets, as they are stored. Its debug form hides the hash of a
/// password.
#[derive(Clone, Default, PartialEq)]
pub struct ScheduledFields(Map<String, Value>);

impl ScheduledFields {
    /// Returns the fields of an edit.
    pub fn of(edit: &Edit) -> Self {
        // The patterns name every field, so that the compiler notices a forgotten one.
        let Edit {
            long_url,
            title,
            crawlable,
            forward_query,
            details,
            tags,
            block: _,
            relocation: _,
            precondition: _,
        } = edit;
        let DetailsEdit {
            valid_since,
            valid_until,
            max_visits,
            description,
            disabled,
            status,
            extra_path,
            expired_url,
            preview,
            password,
            rules,
        } = details;
        let fields = [
            ("longUrl", value(long_url)),
            ("title", value(title)),
            ("description", value(description)),
            ("tags", value(tags)),
            ("validSince", value(valid_since)),
            ("validUntil", value(valid_until)),
            ("maxVisits", value(max_visits)),
            ("crawlable", value(crawlable)),
            ("forwardQuery", value(forward_query)),
            ("enabled", value(&disabled.map(|disabled| !disabled))),
            ("redirectStatus", value(status)),
            ("extraPath", value(extra_path)),
            ("expiredUrl", value(expired_url)),
            ("preview", value(preview)),
            ("redirectRules", value(rules)),
            (PASSWORD, value(password)),
        ];
        Self(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
    }

    /// Parses stored fields. What is no object makes no [`edit`](Self::edit).
    pub fn from_stored(text: &str) -> Self {
        let fields = serde_json::from_str(text);
        Self(fields.unwrap_or_else(|_| Map::from_iter([(String::new(), Value::from(text))])))
    }

    /// Returns the fields as they are stored.
    pub fn stored(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// Returns whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the edit; `None` if a later release has stored what this one cannot read.
    pub fn edit(&self) -> Option<Edit> {
        let mut edit = Edit::default();
        for (name, value) in &self.0 {
            match name.as_str() {
                PASSWORD => edit.details.password = Some(serde_json::from_value(value.clone()).ok()?),
                name => set_field(&mut edit, name, value)?,
            }
        }
        Some(edit)
    }

    /// Returns the fields for readers: whether there is a password in place of its hash.
    pub fn shown(&self) -> Map<String, Value> {
        let shown = |(name, value): (&String, &Value)| match name.as_str() {
            PASSWORD => (HAS_PASSWORD.to_owned(), json!(!value.is_null())),
            _ => (name.clone(), value.clone()),
        };
        self.0.iter().map(shown).collect()
    }
}

impl fmt::Debug for ScheduledFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().fmt(f)
    }
}

fn value<T: Serialize>(field: &Option<T>) -> Option<Value> {
    field.as_ref().map(|value| json!(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condition, ExtraPath, LongUrl, PasswordHash, Preview, RedirectStatus, Rule, Tag};

    fn edit() -> Edit {
        let url = |path: &str| LongUrl::from_stored(format!("https://e.test/{path}"));
        let at = |second| Timestamp::from_second(second).ok();
        let condition = Condition::parse("device", None, Some("android")).unwrap();
        let details = DetailsEdit {
            valid_since: Some(at(1)),
            valid_until: Some(at(9)),
            max_visits: Some(Some(3)),
            description: Some(Some("D".to_owned())),
            disabled: Some(true),
            status: Some(RedirectStatus::try_from(308).ok()),
            extra_path: Some(Some(ExtraPath::Append)),
            expired_url: Some(Some(url("over"))),
            preview: Some(Some(Preview { image: Some(url("a.png")), ..Preview::default() })),
            password: Some(PasswordHash::of("hush").ok()),
            rules: Some(vec![Rule::new(url("android"), vec![condition])]),
        };
        Edit {
            long_url: Some(url("other")),
            title: Some(Some("T".to_owned())),
            crawlable: Some(true),
            forward_query: Some(false),
            tags: Some(vec![Tag::from_stored("a")]),
            details,
            ..Edit::default()
        }
    }

    fn stored(edit: &Edit) -> ScheduledFields {
        ScheduledFields::from_stored(&ScheduledFields::of(edit).stored())
    }

    #[test]
    fn every_field_that_is_set_or_cleared_comes_back_and_no_other() {
        let full = edit();
        assert_eq!(stored(&full).edit(), Some(full));
        let details = DetailsEdit {
            valid_since: Some(None),
            valid_until: Some(None),
            max_visits: Some(None),
            description: Some(None),
            disabled: Some(false),
            status: Some(None),
            extra_path: Some(None),
            expired_url: Some(None),
            preview: Some(None),
            password: Some(None),
            rules: Some(Vec::new()),
        };
        let cleared = Edit { title: Some(None), tags: Some(Vec::new()), details, ..Edit::default() };
        assert_eq!(stored(&cleared).edit(), Some(cleared));
        assert!(stored(&Edit::default()).is_empty());
        assert_eq!(stored(&Edit::default()).edit(), Some(Edit::default()));
    }

    #[test]
    fn no_reader_sees_a_hash() {
        let fields = stored(&edit());
        assert_eq!(fields.shown()["hasPassword"], true);
        for text in [Value::Object(fields.shown()).to_string(), format!("{fields:?}")] {
            assert!(text.contains("longUrl") && !text.contains("argon2"), "{text}");
        }
    }

    #[test]
    fn what_a_later_release_has_stored_is_no_edit() {
        for text in [r#"{"title":"T","color":"red"}"#, r#"{"maxVisits":"many"}"#, "[]", "{"] {
            assert_eq!(ScheduledFields::from_stored(text).edit(), None, "{text}");
        }
    }
}
