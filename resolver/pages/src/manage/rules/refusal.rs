//! Errors of the use case in words: which rule and which condition they are about, and what was
//! expected.

use app::{AppError, InvalidField, redirect_rules::RuleFields};
use links::{Browser, CONDITIONS_MAX, Device, RULES_MAX, Rule};
use url::Url;

use super::change::Change;
use crate::{
    error::{self, expected},
    locale::Locale,
};

/// What an error is about. Rules and conditions are named by their places, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject<'a> {
    /// The number of rules.
    Rules,
    /// A field of a rule.
    Rule(usize, &'a str),
    /// A field of a condition of a rule.
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

/// A list of rules that was refused.
pub(super) struct Sent<'a> {
    /// The change that made it; `None` if the form asked for none.
    pub(super) change: Option<&'a Change>,
    /// The rules.
    pub(super) rules: Vec<RuleFields>,
    /// Returns whether the target rules allow a URL.
    pub(super) allows: &'a dyn Fn(&str) -> bool,
}

impl Sent<'_> {
    /// Returns the number that the page shows a rule with, by its place in the list. The page shows
    /// the rules as they were before the change.
    fn number(&self, place: usize) -> String {
        let shown = self.change.map_or(place, |change| change.place_before(place));
        (shown + 1).to_string()
    }

    /// Returns whether a rule has a complete URL that the target rules deny.
    fn is_denied(&self, rule: usize) -> bool {
        let url = self.rules.get(rule).and_then(|rule| rule.long_url.as_deref());
        url.is_some_and(|url| Url::parse(url).is_ok() && !(self.allows)(url))
    }

    /// Returns the type of a condition; empty for none.
    fn kind(&self, rule: usize, condition: usize) -> &str {
        let conditions = self.rules.get(rule).and_then(|rule| rule.conditions.as_deref());
        let condition = conditions.and_then(|conditions| conditions.get(condition));
        condition.and_then(|condition| condition.kind.as_deref()).unwrap_or_default()
    }

    /// Returns the text of a wrong field.
    fn text(&self, field: &InvalidField, t: &Locale) -> String {
        match Subject::of(&field.field) {
            Subject::Rules => t.with("rules-full", RULES_MAX.to_string()),
            Subject::Rule(rule, name) => {
                let text = match name {
                    "conditions" => t.with("rules-conditions-full", CONDITIONS_MAX.to_string()),
                    "longUrl" if self.is_denied(rule) => t.text("rules-expected-allowed"),
                    "longUrl" => t.text("expected-longUrl"),
                    _ => expected(field, t),
                };
                t.with_two("rules-wrong", t.with("rules-rule", self.number(rule)), text)
            }
            Subject::Condition(rule, condition, name) => {
                let number = (condition + 1).to_string();
                let place = t.with_two("rules-rule-condition", self.number(rule), number);
                t.with_two("rules-wrong", place, condition_text(name, self.kind(rule, condition), t))
            }
            Subject::Circle => t.text("rules-expected-other"),
            Subject::Others => t.text("rules-others"),
            Subject::Unknown => t.text("error-form"),
        }
    }
}

/// Returns the text of an error about the list that was sent.
pub(super) fn reason(error: &AppError, sent: &Sent<'_>, t: &Locale) -> String {
    match error {
        AppError::Invalid(fields) => {
            fields.iter().map(|field| sent.text(field, t)).collect::<Vec<_>>().join(" ")
        }
        AppError::Superseded => t.text("rules-superseded"),
        other => error::message(other, t),
    }
}

/// Returns the fields of the form for another rule or condition that an error is about.
pub(super) fn wrong_fields(error: &AppError, change: &Change, before: &[Rule]) -> Vec<String> {
    let AppError::Invalid(fields) = error else { return Vec::new() };
    let of_form = |field: &InvalidField| {
        let name = match (Subject::of(&field.field), change) {
            (Subject::Circle, Change::AddRule(_) | Change::Lead(..)) => "longUrl",
            (Subject::Rule(rule, name), Change::Lead(place, _)) => Some(name).filter(|_| rule == *place)?,
            (Subject::Rule(rule, name) | Subject::Condition(rule, _, name), Change::AddRule(_)) => {
                Some(name).filter(|_| rule == before.len())?
            }
            (Subject::Condition(rule, condition, name), Change::AddCondition(place, _)) => {
                let is_added = rule == *place && condition == before.get(rule)?.conditions.len();
                Some(name).filter(|_| is_added)?
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
        _ => t.text("rules-expected-value"),
    }
}

#[cfg(test)]
mod tests {
    use links::{Condition, LongUrl};

    use super::{super::change::Typed, *};
    use crate::locale::Locales;

    fn invalid(paths: &[&str]) -> AppError {
        let field =
            |path: &&str| InvalidField { field: (*path).to_owned(), expected: "expected more".to_owned() };
        AppError::Invalid(paths.iter().map(field).collect())
    }

    /// One rule with one condition.
    fn rules() -> Vec<Rule> {
        let conditions = vec![Condition::parse("device", None, Some("ios")).unwrap()];
        vec![Rule::new(LongUrl::from_stored("https://a.example/"), conditions)]
    }

    fn typed(long_url: &str, kind: &str) -> Typed {
        Typed { long_url: long_url.to_owned(), kind: kind.to_owned(), ..Typed::default() }
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
        let locales = Locales::embedded();
        let t = locales.find("en").unwrap();
        let change = Change::AddRule(typed("https://b.example/", "geolocation-country-code"));
        let told = |path: &str, denied: &str| {
            let allows = |url: &str| url != denied;
            let rules = change.apply(&rules()).unwrap();
            reason(&invalid(&[path]), &Sent { change: Some(&change), rules, allows: &allows }, t)
        };
        let country = told("redirectRules.1.conditions.0.matchValue", "");
        assert!(country.starts_with("Rule 2, condition 1:") && country.contains("DE"), "{country}");
        let wrong = told("redirectRules.1.longUrl", "");
        let denied = told("redirectRules.1.longUrl", "https://b.example/");
        assert!(wrong.starts_with("Rule 2:") && denied.starts_with("Rule 2:"), "{wrong} {denied}");
        assert_ne!(wrong, denied);
    }

    #[test]
    fn rules_have_the_numbers_that_the_page_shows() {
        let locales = Locales::embedded();
        let t = locales.find("en").unwrap();
        let two = [rules(), rules()].concat();
        for (change, place, expected) in [(Change::Up(1), 1, "Rule 1:"), (Change::Delete(0), 0, "Rule 2:")] {
            let rules = change.apply(&two).unwrap();
            let sent = Sent { change: Some(&change), rules, allows: &|_| false };
            let told = reason(&invalid(&[&format!("redirectRules.{place}.longUrl")]), &sent, t);
            assert!(told.starts_with(expected), "{told}");
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
        let fields = |change: &Change| wrong_fields(&error, change, &rules());
        assert_eq!(fields(&Change::AddRule(typed("x", ""))), ["longUrl", "type"]);
        assert_eq!(fields(&Change::AddCondition(0, typed("", "device"))), ["matchValue"]);
        assert_eq!(fields(&Change::Lead(0, typed("x", ""))), ["longUrl"]);
        assert!(fields(&Change::Delete(0)).is_empty());
    }
}
