//! Errors of the use case in words: which rule they are about, and what was expected.

use app::{AppError, InvalidField, redirect_rules::RuleFields};
use links::{Browser, CONDITIONS_MAX, Device, RULES_MAX};
use url::Url;

use super::change::{Change, TypedIn};
use crate::{
    locale::Locale,
    messages::{expected, message},
};

/// Reads the path of a field of a rule, such as `redirectRules.0.conditions.1.matchValue`: the
/// places of the rule and of its condition, and the field.
fn place(path: &str) -> Option<(usize, Option<usize>, &str)> {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["redirectRules", rule, field] => Some((rule.parse().ok()?, None, field)),
        ["redirectRules", rule, "conditions", condition, field] => {
            Some((rule.parse().ok()?, Some(condition.parse().ok()?), field))
        }
        _ => None,
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
    let Some((rule, condition, name)) = place(&field.field) else {
        return match field.field.as_str() {
            "redirectRules" => t.with("rules-full", RULES_MAX.to_string()),
            // A rule, not known which, leads to the link itself.
            "longUrl" => t.text("rules-expected-other"),
            "extraPath" => t.text("expected-extraPath"),
            "(the others)" => t.text("rules-others"),
            _ => t.text("error-form"),
        };
    };
    let rule = rules.get(rule);
    let url = rule.and_then(|rule| rule.long_url.as_deref()).unwrap_or_default();
    let text = match (condition, name) {
        (Some(condition), _) => {
            let conditions = rule.and_then(|rule| rule.conditions.as_deref());
            let condition = conditions.and_then(|conditions| conditions.get(condition));
            let kind = condition.and_then(|condition| condition.kind.as_deref()).unwrap_or_default();
            condition_text(name, kind, t)
        }
        (None, "conditions") => t.with("rules-conditions-full", CONDITIONS_MAX.to_string()),
        (None, "longUrl") if Url::parse(url).is_ok() && !allows(url) => t.text("rules-expected-allowed"),
        (None, "longUrl") => t.text("expected-longUrl"),
        (None, _) => expected(field, t),
    };
    if url.is_empty() { text } else { t.with_two("rules-wrong", url, text) }
}

/// Returns the fields of the form with typed values that an error is about.
pub(super) fn wrong_fields(error: &AppError, change: &Change) -> Vec<String> {
    let AppError::Invalid(fields) = error else { return Vec::new() };
    let last_condition = |rule: usize| change.rules.get(rule)?.conditions.as_ref()?.len().checked_sub(1);
    let of_form = |field: &InvalidField| {
        let name = match (place(&field.field), change.typed_in?) {
            (None, TypedIn::NewRule | TypedIn::LongUrl(_)) if field.field == "longUrl" => "longUrl",
            (Some((rule, None, name)), TypedIn::LongUrl(typed)) if rule == typed => name,
            (Some((rule, _, name)), TypedIn::NewRule) if rule + 1 == change.rules.len() => name,
            (Some((rule, Some(condition), name)), TypedIn::Condition(typed))
                if rule == typed && last_condition(rule) == Some(condition) =>
            {
                name
            }
            _ => return None,
        };
        Some(name.to_owned())
    };
    fields.iter().filter_map(of_form).collect()
}

/// Returns what a field of a condition of this type expects.
fn condition_text(name: &str, kind: &str, t: &Locale) -> String {
    match (name, kind) {
        ("type", _) => t.text("rules-expected-type"),
        ("matchKey", _) => t.text("rules-expected-key"),
        (_, "device") => t.with("rules-expected-device", Device::NAMES.join(", ")),
        (_, "browser") => t.with("rules-expected-browser", Browser::NAMES.join(", ")),
        (_, "ip-address") => t.text("rules-expected-address"),
        (_, "geolocation-country-code") => t.text("rules-expected-country"),
        (_, "before-date" | "after-date") => t.text("rules-expected-date"),
        (_, "share") => t.text("rules-expected-share"),
        (_, "path") => t.text("rules-expected-path"),
        (_, "scheme") => t.text("rules-expected-scheme"),
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
            ("redirectRules.0.longUrl", Some((0, None, "longUrl"))),
            ("redirectRules.12.conditions", Some((12, None, "conditions"))),
            ("redirectRules.1.conditions.2.matchKey", Some((1, Some(2), "matchKey"))),
            ("redirectRules.x.longUrl", None),
            ("redirectRules.1.conditions.x.type", None),
        ] {
            assert_eq!(place(path), expected, "{path}");
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
        for (path, text) in [
            ("redirectRules", t.with("rules-full", RULES_MAX.to_string())),
            ("longUrl", t.text("rules-expected-other")),
            ("(the others)", t.text("rules-others")),
            ("do", t.text("error-form")),
        ] {
            assert_eq!(told(path, ""), text, "{path}");
        }
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
