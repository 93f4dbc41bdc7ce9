//! Shows and replaces the redirect rules of a link.
//!
//! A call may have two thousand conditions. Each rule and each condition comes with the fields of
//! it that the adapter could not read, so that wrong fields are reported in the order of the rules.

use std::sync::Arc;

use jiff::tz::TimeZone;
use links::{
    CONDITIONS_MAX, Condition, DetailsEdit, Edit, Link, ONE_PATH_EXPECTED, RULES_MAX, Record, Rule,
    SHARES_EXPECTED, TimeError, api_key::Grant, excess_share, scope::Scope, stored_time,
};

use crate::{
    Answer, AppError, Field, FieldErrors, LinkService, authorize::require, edit_link::Target,
    find_link::LinkName, values::Checked,
};

const RULES: &str = "redirectRules";
const CONDITIONS: &str = "conditions";

/// A redirect rule, unchecked.
#[derive(Debug, Default)]
pub struct RuleFields {
    /// The target: an absolute URL.
    pub long_url: Option<String>,
    /// The conditions, at most [`CONDITIONS_MAX`].
    pub conditions: Option<Vec<ConditionFields>>,
    /// The fields that the adapter could not read, by their names in the rule.
    pub wrong: FieldErrors,
}

/// A condition of a redirect rule, unchecked.
#[derive(Debug, Default)]
pub struct ConditionFields {
    /// The type, one of [`links::CONDITION_TYPES`].
    pub kind: Option<String>,
    /// The name of a query parameter, for the types that need one.
    pub match_key: Option<String>,
    /// The value to compare with, for the types that need one.
    pub match_value: Option<String>,
    /// The fields that the adapter could not read, by their names in the condition.
    pub wrong: FieldErrors,
}

impl LinkService {
    /// Returns a link with its redirect rules.
    pub async fn get_redirect_rules(&self, name: &LinkName, by: &Grant) -> Result<Arc<Link>, AppError> {
        require(by, Scope::Read)?;
        self.find_link(name, by).await
    }

    /// Replaces all redirect rules of a link. Their order is their priority.
    ///
    /// `rules` has a phrase that says what was expected in place of a rule that the adapter could
    /// not read, and `wrong` holds the other fields that it could not read. Dates and times without
    /// an offset are in `zone`.
    pub fn set_redirect_rules<'a>(
        &'a self,
        target: &'a Target,
        rules: Option<Vec<Checked<RuleFields>>>,
        mut wrong: FieldErrors,
        zone: &'a TimeZone,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Edit)?;
            // As in Shlink, a missing link is reported before wrong fields.
            self.find_link(&target.name, by).await?;
            let rules = self.check_rules(rules, zone, &mut wrong);
            wrong.finish()?;
            let details = DetailsEdit { rules: Some(rules), ..DetailsEdit::default() };
            let edit = Edit { details, ..Edit::default() };
            self.change_found(target, |link| self.check_against(link, &edit), by).await
        })
    }

    fn check_rules(
        &self,
        rules: Option<Vec<Checked<RuleFields>>>,
        zone: &TimeZone,
        wrong: &mut FieldErrors,
    ) -> Vec<Rule> {
        let rules = rules.filter(|rules| rules.len() <= RULES_MAX).ok_or_else(expected_rules);
        let rules = wrong.note(RULES, rules).unwrap_or_default();
        let check = |(place, rule): (usize, Checked<RuleFields>)| {
            self.check_rule(&format!("{RULES}.{place}"), rule, zone, wrong)
        };
        let rules: Vec<Rule> = rules.into_iter().enumerate().filter_map(check).collect();
        // Wrong rules and conditions are left out, so the places of the others are different.
        if wrong.is_empty() {
            let second_path = |(place, rule): (usize, &Rule)| Some((place, rule.second_path()?));
            let paths = rules.iter().enumerate().filter_map(second_path).map(|at| (at, ONE_PATH_EXPECTED));
            let share = excess_share(&rules).map(|at| (at, SHARES_EXPECTED));
            for ((rule, condition), expected) in paths.chain(share) {
                wrong.add(&format!("{RULES}.{rule}.{CONDITIONS}.{condition}.matchValue"), expected);
            }
        }
        rules
    }

    /// Checks the rule at this path. A wrong value is recorded in `wrong`.
    fn check_rule(
        &self,
        at: &str,
        rule: Checked<RuleFields>,
        zone: &TimeZone,
        wrong: &mut FieldErrors,
    ) -> Option<Rule> {
        let RuleFields { long_url, conditions, wrong: unread } = wrong.note(at, rule)?;
        wrong.note_below(at, unread);
        let long_url = long_url.ok_or_else(|| Field::LongUrl.expected());
        let long_url = long_url.and_then(|text| self.check_long_url(&text));
        let long_url = wrong.note(&format!("{at}.{}", Field::LongUrl.name()), long_url);
        let conditions = conditions.filter(|conditions| conditions.len() <= CONDITIONS_MAX);
        let conditions = conditions.ok_or_else(expected_conditions);
        let conditions = wrong.note(&format!("{at}.{CONDITIONS}"), conditions)?;
        let check = |(place, condition): (usize, ConditionFields)| {
            check_condition(&format!("{at}.{CONDITIONS}.{place}"), condition, zone, wrong)
        };
        let conditions = conditions.into_iter().enumerate().filter_map(check).collect();
        Some(Rule::new(long_url?, conditions))
    }
}

/// Describes the list of rules that a call may have.
pub fn expected_rules() -> String {
    format!("expected an array of at most {RULES_MAX} rules")
}

/// Describes the list of conditions that a rule may have.
pub fn expected_conditions() -> String {
    format!("expected an array of at most {CONDITIONS_MAX} conditions")
}

/// Checks the condition at this path. A wrong value is recorded in `wrong`.
fn check_condition(
    at: &str,
    condition: ConditionFields,
    zone: &TimeZone,
    wrong: &mut FieldErrors,
) -> Option<Condition> {
    let ConditionFields { kind, match_key, match_value, wrong: unread } = condition;
    wrong.note_below(at, unread);
    let (kind, value) = (kind.unwrap_or_default(), match_value.as_deref());
    let dated = value.filter(|_| Condition::has_time(&kind));
    let moment = match dated.map(|text| stored_time(text, zone)).transpose() {
        Ok(moment) => moment,
        // The condition itself says best what a text has to be that is no time at all.
        Err(TimeError::Form) => None,
        Err(error) => return wrong.note(&format!("{at}.matchValue"), Err(error.to_string())),
    };
    let parsed = Condition::parse(&kind, match_key.as_deref(), moment.as_deref().or(value));
    let field = parsed.as_ref().err().map_or("type", |error| error.field);
    wrong.note(&format!("{at}.{field}"), parsed.map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_of_conditions_get_an_offset() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        for (kind, key, expected) in [
            ("before-date", None, "2031-01-01T10:00:00+02:00"),
            ("after-date", None, "2031-01-01T10:00:00+02:00"),
            ("query-param", Some("at"), "2031-01-01T10:00:00"),
        ] {
            let fields = ConditionFields {
                kind: Some(kind.to_owned()),
                match_key: key.map(str::to_owned),
                match_value: Some("2031-01-01T10:00:00".to_owned()),
                wrong: FieldErrors::default(),
            };
            let condition = check_condition("", fields, &zone, &mut FieldErrors::default()).unwrap();
            assert_eq!(condition.parts(), (kind, key, Some(expected)));
        }
    }

    #[test]
    fn fields_that_could_not_be_read_are_reported_before_wrong_values() {
        let mut unread = FieldErrors::default();
        for field in ["colour", "type"] {
            unread.add(field, "expected another field");
        }
        let first = ConditionFields { wrong: unread, ..ConditionFields::default() };
        let other = ConditionFields { kind: Some("device".to_owned()), ..ConditionFields::default() };
        let mut wrong = FieldErrors::default();
        for (at, fields) in [("conditions.0", first), ("conditions.1", other)] {
            assert_eq!(check_condition(at, fields, &TimeZone::UTC, &mut wrong), None);
        }
        let Err(AppError::Invalid(fields)) = wrong.finish() else { panic!("expected wrong fields") };
        let names: Vec<&str> = fields.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(names, ["conditions.0.colour", "conditions.0.type", "conditions.1.matchValue"]);
    }
}
