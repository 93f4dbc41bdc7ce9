//! The form that edits a link.
//!
//! 1. The form carries each value that it was filled with. Only values that differ from it are
//!    changes, so that a form that is sent unchanged changes nothing: not a tag with a comma in it,
//!    nor a time that the change of the clocks makes ambiguous.
//! 2. If the link was changed meanwhile, the form is filled anew: with the present values, except
//!    where this person has typed another one ([`LinkForm::rebased`]).

use app::{FieldErrors, LinkFields, time::read_time};
use jiff::{Timestamp, tz::TimeZone};
use links::{Link, Record};

use crate::{form::Form, home::tags};

/// The fields, and whether each is a checkbox.
const FIELDS: [(&str, bool); 10] = [
    ("longUrl", false),
    ("title", false),
    ("description", false),
    ("tags", false),
    ("validSince", false),
    ("validUntil", false),
    ("maxVisits", false),
    ("crawlable", true),
    ("forwardQuery", true),
    ("enabled", true),
];

/// A filled form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkForm {
    pub(super) fields: Vec<FormField>,
    /// The new password; empty for none.
    pub(super) password: String,
    /// Whether the password is to be removed.
    pub(super) removes_password: bool,
}

/// A field of the form. A checkbox is `on` or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FormField {
    pub(super) name: &'static str,
    /// The value that the form was filled with.
    pub(super) was: String,
    typed: String,
}

/// A field that was changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) name: &'static str,
    pub(super) yours: String,
    pub(super) theirs: String,
}

impl LinkForm {
    /// Fills the form with the values of a link. Times are in the zone of the service.
    pub(super) fn of(record: &Record, zone: &TimeZone) -> Self {
        let Link { long_url, title, crawlable, forward_query, details, .. } = &record.link;
        let details = details.as_deref();
        let time = |time: Option<Timestamp>| time.map(|time| form_time(time, zone)).unwrap_or_default();
        let tags: Vec<String> = record.tags.iter().map(ToString::to_string).collect();
        let max_visits = details.and_then(|details| details.max_visits);
        let values = [
            long_url.as_str().to_owned(),
            title.clone().unwrap_or_default(),
            details.and_then(|details| details.description.clone()).unwrap_or_default(),
            tags.join(", "),
            time(details.and_then(|details| details.valid_since)),
            time(details.and_then(|details| details.valid_until)),
            max_visits.map(|count| count.to_string()).unwrap_or_default(),
            checkbox(*crawlable),
            checkbox(*forward_query),
            checkbox(!details.is_some_and(|details| details.disabled)),
        ];
        let field = |((name, _), value): ((&'static str, bool), String)| {
            let value = with_plain_breaks(&value);
            FormField { name, was: value.clone(), typed: value }
        };
        Self { fields: FIELDS.into_iter().zip(values).map(field).collect(), ..Self::default() }
    }

    /// Reads the form as it was sent.
    pub(super) fn read(form: &Form) -> Self {
        let field = |(name, is_checkbox): (&'static str, bool)| {
            let typed = match is_checkbox {
                true => checkbox(form.is_on(name)),
                false => with_plain_breaks(form.get(name).unwrap_or_default()),
            };
            let was = with_plain_breaks(form.get(&format!("was-{name}")).unwrap_or_default());
            FormField { name, was, typed }
        };
        Self {
            fields: FIELDS.into_iter().map(field).collect(),
            password: form.get("password").unwrap_or_default().to_owned(),
            removes_password: form.is_on("removePassword"),
        }
    }

    /// Returns the value to show in a field.
    pub(super) fn value(&self, name: &str) -> &str {
        self.fields.iter().find(|field| field.name == name).map_or("", |field| field.typed.as_str())
    }

    /// Returns whether a checkbox is checked.
    pub(super) fn is_on(&self, name: &str) -> bool {
        !self.value(name).is_empty()
    }

    /// Returns the fields that were changed. An empty text removes the value.
    pub(super) fn changes(&self, zone: &TimeZone, wrong: &mut FieldErrors) -> LinkFields {
        let changed = |name: &str| {
            let field = self.fields.iter().find(|field| field.name == name)?;
            (field.typed != field.was).then(|| field.typed.trim().to_owned())
        };
        let text = |name: &str| changed(name).map(|text| Some(text).filter(|text| !text.is_empty()));
        let flag = |name: &str| changed(name).map(|value| Some(!value.is_empty()));
        let mut time = |name: &str| {
            let Some(text) = text(name)? else { return Some(None) };
            wrong.note(name, read_time(&text, zone)).map(Some)
        };
        let (valid_since, valid_until) = (time("validSince"), time("validUntil"));
        let max_visits = text("maxVisits").and_then(|text| match text {
            None => Some(None),
            Some(text) => {
                let read = text.parse().map_err(|_| "expected a number".to_owned());
                wrong.note("maxVisits", read).map(Some)
            }
        });
        let password = match self.password.as_str() {
            "" => self.removes_password.then_some(None),
            password => Some(Some(password.to_owned())),
        };
        LinkFields {
            // A long URL cannot be removed, and an empty one is refused.
            long_url: changed("longUrl").map(Some),
            title: text("title"),
            description: text("description"),
            tags: changed("tags").map(|text| Some(tags(&text))),
            valid_since,
            valid_until,
            max_visits,
            crawlable: flag("crawlable"),
            forward_query: flag("forwardQuery"),
            enabled: flag("enabled"),
            password,
            ..LinkFields::default()
        }
    }

    /// Fills the form anew with the present values of the link, and keeps what was typed. Returns
    /// the fields that were changed meanwhile to other values than the typed ones.
    pub(super) fn rebased(self, present: Self) -> (Self, Vec<Conflict>) {
        let mut conflicts = Vec::new();
        let rebase = |(mine, theirs): (FormField, FormField)| {
            let (name, present) = (mine.name, theirs.was);
            if present != mine.was && present != mine.typed {
                conflicts.push(Conflict { name, yours: mine.typed.clone(), theirs: present.clone() });
            }
            let typed = if mine.typed == mine.was { present.clone() } else { mine.typed };
            FormField { name, was: present, typed }
        };
        let fields = self.fields.into_iter().zip(present.fields).map(rebase).collect();
        (Self { fields, ..self }, conflicts)
    }
}

fn checkbox(is_on: bool) -> String {
    if is_on { "on".to_owned() } else { String::new() }
}

/// Returns a text with the line breaks that are stored: forms send CRLF.
fn with_plain_breaks(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Formats a time as fields of the type `datetime-local` have it.
fn form_time(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of a link, as a browser sends it, with some fields typed over.
    fn sent(was: &[(&str, &str)], typed: &[(&str, &str)]) -> LinkForm {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in was {
            query.append_pair(&format!("was-{name}"), value);
            if !typed.iter().any(|(other, _)| other == name) {
                query.append_pair(name, value);
            }
        }
        query.extend_pairs(typed);
        LinkForm::read(&Form::parse(query.finish().as_bytes()))
    }

    #[test]
    fn a_form_that_is_sent_unchanged_changes_nothing() {
        let was = [
            ("longUrl", "https://e.org/"),
            ("description", "one\ntwo"),
            ("tags", "a,b, c"),
            ("validUntil", "2030-10-27T02:30:00"),
            ("enabled", "on"),
        ];
        let mut form = sent(&was, &[("description", "one\r\ntwo")]);
        let mut wrong = FieldErrors::default();
        assert_eq!(form.changes(&TimeZone::UTC, &mut wrong), LinkFields::default());
        form.removes_password = true;
        assert_eq!(form.changes(&TimeZone::UTC, &mut wrong).password, Some(None));
        assert!(wrong.finish().is_ok());
    }

    #[test]
    fn only_what_was_typed_is_changed_and_wrong_values_are_named() {
        let form = sent(&[("title", "old"), ("enabled", "on"), ("maxVisits", "3")], &[("title", " new ")]);
        let mut wrong = FieldErrors::default();
        let changes = form.changes(&TimeZone::UTC, &mut wrong);
        assert_eq!(changes.title, Some(Some("new".to_owned())));
        assert_eq!((changes.enabled, changes.max_visits), (None, None));
        let form = sent(&[("maxVisits", "3")], &[("maxVisits", "many"), ("validSince", "x")]);
        form.changes(&TimeZone::UTC, &mut wrong);
        assert!(wrong.finish().is_err());
    }

    #[test]
    fn after_a_conflict_untouched_fields_have_the_present_values() {
        let mine = sent(&[("title", "a"), ("tags", "x"), ("description", "d")], &[("title", "mine")]);
        let present = sent(&[("title", "theirs"), ("tags", "y"), ("description", "d")], &[]);
        let (form, conflicts) = mine.rebased(present);
        assert_eq!((form.value("title"), form.value("tags"), form.value("description")), ("mine", "y", "d"));
        let names: Vec<_> = conflicts.iter().map(|conflict| conflict.name).collect();
        assert_eq!(names, ["title", "tags"]);
        let changes = form.changes(&TimeZone::UTC, &mut FieldErrors::default());
        assert_eq!((changes.title, changes.tags), (Some(Some("mine".to_owned())), None));
    }
}
