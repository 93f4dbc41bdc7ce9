//! The form that edits a link.
//!
//! 1. The form carries each value that it was filled with. Only values that differ from it are
//!    changes, so that a form that is sent unchanged changes nothing: not a tag with a comma in it,
//!    nor a time that the change of the clocks makes ambiguous.
//! 2. The form carries the version of the link too. If the link was changed meanwhile, nothing is
//!    stored, and the form is filled anew: with the present values, except where this person has
//!    typed another one ([`LinkForm::rebased`]).
//!
//! A new field takes a line in [`FIELDS`], one in [`LinkForm::changes`], and the texts
//! `field-…` and `expected-…` of its name in each language.

use app::{Field, FieldErrors, LinkFields, scheduled_edits::SCHEDULED_FOR, values::read_time};
use jiff::{Timestamp, tz::TimeZone};
use links::{Details, ExtraPath, LongUrl, Record};

use crate::{form::Form, link_input::tags};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Text,
    Area,
    Time,
    Number,
    /// One of the names of [`ExtraPath`], or none.
    ExtraPath,
    Checkbox,
}

/// Writes the value of a link's field as the form has it. Times are in the zone of the service.
type Write = fn(&Record, &Details, &TimeZone) -> String;

const FIELDS: [(Field, Input, Write); 13] = [
    (Field::LongUrl, Input::Text, |record, _, _| record.link.long_url.as_str().to_owned()),
    // Empty for a minted code.
    (Field::CustomSlug, Input::Text, |_, details, _| {
        details.slug.as_ref().map(ToString::to_string).unwrap_or_default()
    }),
    (Field::Title, Input::Text, |record, _, _| record.link.title.clone().unwrap_or_default()),
    (Field::Description, Input::Area, |_, details, _| details.description.clone().unwrap_or_default()),
    (Field::Tags, Input::Text, |record, _, _| {
        record.tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }),
    (Field::ValidSince, Input::Time, |_, details, zone| form_time(details.valid_since, zone)),
    (Field::ValidUntil, Input::Time, |_, details, zone| form_time(details.valid_until, zone)),
    (Field::MaxVisits, Input::Number, |_, details, _| {
        details.max_visits.map(|count| count.to_string()).unwrap_or_default()
    }),
    (Field::ExtraPath, Input::ExtraPath, |_, details, _| {
        details.extra_path.map_or("", ExtraPath::as_str).to_owned()
    }),
    (Field::ExpiredUrl, Input::Text, |_, details, _| {
        details.expired_url.as_ref().map_or("", LongUrl::as_str).to_owned()
    }),
    (Field::Enabled, Input::Checkbox, |_, details, _| checkbox(!details.disabled)),
    (Field::ForwardQuery, Input::Checkbox, |record, _, _| checkbox(record.link.forward_query)),
    (Field::Crawlable, Input::Checkbox, |record, _, _| checkbox(record.link.crawlable)),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkForm {
    pub(super) fields: Vec<FormField>,
    pub(super) password: String,
    pub(super) removes_password: bool,
    /// When the edit is made; empty for now.
    pub(super) scheduled_for: String,
}

/// A field of the form. A checkbox is `on` or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FormField {
    pub(super) field: Field,
    pub(super) input: Input,
    pub(super) was: String,
    pub(super) typed: String,
}

/// A field that was changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) field: Field,
    pub(super) yours: String,
    pub(super) theirs: String,
}

impl LinkForm {
    /// Fills the form with the values of a link. Times are in the zone of the service.
    pub(super) fn of(record: &Record, zone: &TimeZone) -> Self {
        let without = Details::default();
        let details = record.link.details.as_deref().unwrap_or(&without);
        let filled = |(field, input, write): (Field, Input, Write)| {
            let value = with_plain_breaks(&write(record, details, zone));
            FormField { field, input, was: value.clone(), typed: value }
        };
        Self { fields: FIELDS.into_iter().map(filled).collect(), ..Self::default() }
    }

    pub(super) fn read(form: &Form) -> Self {
        let sent = |(field, input, _): (Field, Input, Write)| {
            let typed = match input {
                Input::Checkbox => checkbox(form.is_on(field.name())),
                _ => with_plain_breaks(form.get(field.name()).unwrap_or_default()),
            };
            let was = with_plain_breaks(form.get(&format!("was-{}", field.name())).unwrap_or_default());
            FormField { field, input, was, typed }
        };
        Self {
            fields: FIELDS.into_iter().map(sent).collect(),
            password: form.value("password").to_owned(),
            removes_password: form.is_on("removePassword"),
            scheduled_for: form.value(SCHEDULED_FOR).trim().to_owned(),
        }
    }

    /// Returns the fields that were changed. An empty text removes the value.
    pub(super) fn changes(&self, zone: &TimeZone, wrong: &mut FieldErrors) -> LinkFields {
        let changed = |name| self.changed(name);
        let text = |name| changed(name).map(|text| Some(text).filter(|text| !text.is_empty()));
        let flag = |name| changed(name).map(|value| Some(!value.is_empty()));
        let mut time = |name| {
            let Some(text) = text(name)? else { return Some(None) };
            wrong.check(name, read_time(&text, zone)).map(Some)
        };
        let (valid_since, valid_until) = (time(Field::ValidSince), time(Field::ValidUntil));
        let mut number = |name: Field| {
            let Some(text) = text(name)? else { return Some(None) };
            wrong.check(name, text.parse().map_err(|_| name.expected())).map(Some)
        };
        LinkFields {
            // A long URL cannot be removed, and an empty one is refused.
            long_url: changed(Field::LongUrl).map(Some),
            title: text(Field::Title),
            description: text(Field::Description),
            tags: changed(Field::Tags).map(|text| Some(tags(&text))),
            valid_since,
            valid_until,
            max_visits: number(Field::MaxVisits),
            crawlable: flag(Field::Crawlable),
            forward_query: flag(Field::ForwardQuery),
            enabled: flag(Field::Enabled),
            extra_path: text(Field::ExtraPath),
            expired_url: text(Field::ExpiredUrl),
            password: match self.password.as_str() {
                "" => self.removes_password.then_some(None),
                password => Some(Some(password.to_owned())),
            },
            ..LinkFields::default()
        }
    }

    /// Returns the name that the link gets. Without one, and with none in place of its slug, it
    /// keeps its own.
    pub(super) fn slug(&self) -> Option<String> {
        self.changed(Field::CustomSlug).filter(|slug| !slug.is_empty())
    }

    /// Returns when the edit is made, unless that is now.
    pub(super) fn moment(&self) -> Option<&str> {
        Some(self.scheduled_for.as_str()).filter(|moment| !moment.is_empty())
    }

    fn changed(&self, name: Field) -> Option<String> {
        let field = self.fields.iter().find(|field| field.field == name)?;
        (field.typed != field.was).then(|| field.typed.trim().to_owned())
    }

    /// Fills the form anew with the present values of the link, and keeps what was typed. Returns
    /// the fields that were changed meanwhile to other values than the typed ones.
    pub(super) fn rebased(self, present: Self) -> (Self, Vec<Conflict>) {
        let mut conflicts = Vec::new();
        let rebase = |(mine, theirs): (FormField, FormField)| {
            let (field, present) = (mine.field, theirs.was);
            if present != mine.was && present != mine.typed {
                conflicts.push(Conflict { field, yours: mine.typed.clone(), theirs: present.clone() });
            }
            let typed = if mine.typed == mine.was { present.clone() } else { mine.typed };
            FormField { was: present, typed, ..theirs }
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
fn form_time(time: Option<Timestamp>, zone: &TimeZone) -> String {
    let format = |time: Timestamp| time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    time.map(format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let form = sent(&[("extraPath", "")], &[("extraPath", "append")]);
        assert_eq!(form.changes(&TimeZone::UTC, &mut wrong).extra_path, Some(Some("append".to_owned())));
        let form = sent(&[("extraPath", "fill")], &[("extraPath", "")]);
        assert_eq!(form.changes(&TimeZone::UTC, &mut wrong).extra_path, Some(None));
        let form = sent(&[("expiredUrl", "https://e.org/")], &[("expiredUrl", " ")]);
        assert_eq!(form.changes(&TimeZone::UTC, &mut wrong).expired_url, Some(None));
        let slug = |was, typed| sent(&[("customSlug", was)], &[("customSlug", typed)]).slug();
        assert_eq!([slug("", " s "), slug("s", ""), slug("s", "s")], [Some("s".to_owned()), None, None]);
        let form = sent(&[("maxVisits", "3")], &[("maxVisits", "many"), ("validSince", "x")]);
        form.changes(&TimeZone::UTC, &mut wrong);
        assert!(wrong.finish().is_err());
    }

    #[test]
    fn after_a_conflict_untouched_fields_have_the_present_values() {
        let mine = sent(&[("title", "a"), ("tags", "x"), ("description", "d")], &[("title", "mine")]);
        let present = sent(&[("title", "theirs"), ("tags", "y"), ("description", "d")], &[]);
        let (form, conflicts) = mine.rebased(present);
        let typed = |name: Field| form.fields.iter().find(|one| one.field == name).unwrap().typed.as_str();
        assert_eq!([Field::Title, Field::Tags, Field::Description].map(typed), ["mine", "y", "d"]);
        let fields: Vec<_> = conflicts.iter().map(|conflict| conflict.field).collect();
        assert_eq!(fields, [Field::Title, Field::Tags]);
        let changes = form.changes(&TimeZone::UTC, &mut FieldErrors::default());
        assert_eq!((changes.title, changes.tags), (Some(Some("mine".to_owned())), None));
    }
}
