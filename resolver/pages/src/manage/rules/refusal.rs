//! Errors of the use case in words: which rule they are about, and what was expected.

use app::{AppError, InvalidField, redirect_rules::RuleFields};
use links::{Browser, CONDITIONS_MAX, Device, RULES_MAX};
use url::Url;

use super::change::{Change, TypedIn};
use crate::{
    locale::Locale,
    messages::{expected, message},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject<'a> {
    Rules,
    Rule(usize, &'a str),
    Condition(usize, usize, &'a str),
    /// A rule, not known which, that leads to the link itself.
    Circle,
    /// More fields than are told.
    Others,
    /// Something that no form of the page has.
    Unknown,
}

impl<'a> Subject<'a> {
    /// Reads the path of a field, such as `redirectRules.0.conditions.1.matchValue`.
    fn of(path: &'a str) -> Self {
        let parts: Vec<&str> = path.split('.').collect();
        let subject = match parts[..] {
            ["redirectRules"] => Some(Self::Rules),
            ["redirectRules", rule, field] => rule.parse().ok().map(|rule| Self::Rule(rule, field)),
            ["redirectRules", rule, "conditions", condition, field] => {
                let places = rule.parse().ok().zip(condition.parse().ok());
                places.map(|(rule, condition)| Self::Condition(rule, condition, field))
            }
            ["longUrl"] => Some(Self::Circle),
            ["(the others)"] => Some(Self::Others),
            _ => None,
        };
        subject.unwrap_or(Self::Unknown)
    }
}

/// Returns the text of an error about a list; `allows` says whether target rules allow a URL.
pub(super) fn reason(
    error: &AppError,
    rules: &[RuleFields],
    allows: &dyn Fn(&str) -> bool,
    t: &Locale,
) -> String {
    match error {
        AppError::Invalid(fields) => {
            let texts = fields.iter().map(|field| field_text(field, rules, allows, t));
            texts.collect::<Vec<_>>().join(" ")
        }
        AppError::Superseded => t.text("rules-superseded"),
        other => message(other, t),
    }
}

fn field_text(
    field: &InvalidField,
    rules: &[RuleFields],
    allows: &dyn Fn(&str) -> bool,
    t: &Locale,
) -> String {
    let subject = Subject::of(&field.field);
    let (rule, text) = match subject {
        Subject::Rules => return t.with("rules-full", RULES_MAX.to_string()),
        Subject::Circle => return t.text("rules-expected-other"),
        Subject::Others => return t.text("rules-others"),
        Subject::Unknown => return t.text("error-form"),
        Subject::Rule(rule, "conditions") => {
            (rule, t.with("rules-conditions-full", CONDITIONS_MAX.to_string()))
        }
        Subject::Rule(rule, "longUrl") => {
            let url = rules.get(rule).and_then(|rule| rule.long_url.as_deref()).unwrap_or_default();
            let is_denied = Url::parse(url).is_ok() && !allows(url);
            (rule, t.text(if is_denied { "rules-expected-allowed" } else { "expected-longUrl" }))
        }
        Subject::Rule(rule, _) => (rule, expected(field, t)),
        Subject::Condition(rule, condition, name) => {
            let conditions = rules.get(rule).and_then(|rule| rule.conditions.as_deref());
            let condition = conditions.and_then(|conditions| conditions.get(condition));
            let kind = condition.and_then(|condition| condition.kind.as_deref()).unwrap_or_default();
            (rule, condition_text(name, kind, t))
        }
    };
    match rules.get(rule).and_then(|rule| rule.long_url.as_deref()) {
        Some(url) if !url.is_empty() => t.with_two("rules-wrong", url, text),
        _ => text,
    }
}

/// Returns the fields of the form with typed values that an error is about.
pub(super) fn wrong_fields(error: &AppError, change: &Change) -> Vec<String> {
    let AppError::Invalid(fields) = error else { return Vec::new() };
    let last_condition = |rule: usize| change.rules.get(rule)?.conditions.as_ref()?.len().checked_sub(1);
    let of_form = |field: &InvalidField| {
        let name = match (Subject::of(&field.field), change.typed_in?) {
            (Subject::Circle, TypedIn::NewRule | TypedIn::LongUrl(_)) => "longUrl",
            (Subject::Rule(rule, name), TypedIn::LongUrl(place)) if rule == place => name,
            (Subject::Rule(rule, name) | Subject::Condition(rule, _, name), TypedIn::NewRule)
                if rule + 1 == change.rules.len() =>
            {
                name
            }
            (Subject::Condition(rule, condition, name), TypedIn::Condition(place))
                if rule == place && last_condition(rule) == Some(condition) =>
            {
                name
            }
            _ => return None,
        };
        Some(name.to_owned())
    };
    fields.iter().filter_map(of_form).collect()
}

fn condition_text(name: &str, kind: &str, t: &Locale) -> String {
    match (name, kind) {
        ("type", _) => t.text("rules-expected-type"),
        ("matchKey", _) => t.text("rules-expected-key"),
        (_, "device") => t.with("rules-expected-device", Device::NAMES.join(", ")),
        (_, "browser") => t.with("rules-expected-browser", Browser::NAMES.join(", ")),
        (_, "ip-address") => t.text("rules-expected-address"),
        (_, "geolocation-country-code") => t.text("rules-expected-country"),
        (_, "before-date" | "after-date") => t.text("rules-expected-date"),
        _ => t.text("rules-expected-value"),
    }
}

#[cfg(test)]
mod tests {
    use links::{Condition, LongUrl, Rule};

    use super::*;
    use crate::{form::Form, locale::english};

    fn invalid(paths: &[&str]) -> AppError {
        let field =
            |path: &&str| InvalidField { field: (*path).to_owned(), expected: "expected more".to_owned() };
        AppError::Invalid(paths.iter().map(field).collect())
    }

    fn change(form: &str) -> Change {
        let conditions = vec![Condition::parse("device", None, Some("ios")).unwrap()];
        let rules = [Rule::new(LongUrl::from_stored("https://a.example/"), conditions)];
        Change::read(&Form::parse(form.as_bytes()), &rules).unwrap()
    }

    #[test]
    fn a_path_says_what_an_error_is_about() {
        for (path, expected) in [
            ("redirectRules", Subject::Rules),
            ("redirectRules.0.longUrl", Subject::Rule(0, "longUrl")),
            ("redirectRules.12.conditions", Subject::Rule(12, "conditions")),
            ("redirectRules.1.conditions.2.matchKey", Subject::Condition(1, 2, "matchKey")),
            ("longUrl", Subject::Circle),
            ("(the others)", Subject::Others),
            ("redirectRules.x.longUrl", Subject::Unknown),
            ("redirectRules.1.conditions.x.type", Subject::Unknown),
            ("do", Subject::Unknown),
        ] {
            assert_eq!(Subject::of(path), expected, "{path}");
        }
    }

    #[test]
    fn errors_name_the_rule_and_what_was_expected() {
        let t = english();
        let change = change("do=add-rule&longUrl=https://b.example/&type=geolocation-country-code");
        let told = |path: &str, denied: &str| {
            reason(&invalid(&[path]), &change.rules, &|url: &str| url != denied, t)
        };
        let country = told("redirectRules.1.conditions.0.matchValue", "");
        assert!(country.starts_with("https://b.example/:") && country.contains("DE"), "{country}");
        let wrong = told("redirectRules.1.longUrl", "");
        let denied = told("redirectRules.1.longUrl", "https://b.example/");
        assert!(wrong.starts_with("https://b.example/:") && wrong != denied, "{wrong} {denied}");
    }

    #[test]
    fn only_the_fields_of_the_form_are_marked() {
        let error = invalid(&[
            "redirectRules.0.longUrl",
            "redirectRules.0.conditions.1.matchValue",
            "redirectRules.1.longUrl",
            "redirectRules.1.conditions.0.type",
        ]);
        for (form, fields) in [
            ("do=add-rule&longUrl=x", &["longUrl", "type"][..]),
            ("do=add-condition&rule=1&type=device", &["matchValue"]),
            ("do=lead&rule=1&longUrl=x", &["longUrl"]),
            ("do=delete&rule=1", &[]),
        ] {
            assert_eq!(wrong_fields(&error, &change(form)), fields, "{form}");
        }
    }
}
