//! `GET` and `POST /rest/v3/short-urls/{code}/redirect-rules`

use app::{AppError, Field, FieldErrors, authorize::require, edit_link::Target, find_link::LinkName};
use jiff::{Timestamp, tz::TimeZone};
use links::{CONDITIONS_MAX, Condition, Link, LongUrl, RULES_MAX, Rule, api_key::Grant, scope::Scope};
use serde_json::{Map, Value, json};

use super::{fields, json, problem::Problem};
use crate::http::{Answer, App};

/// Shows the rules of a link.
pub(super) async fn get(app: &App, name: &LinkName, by: &Grant) -> Result<Answer, Problem> {
    require(by, Scope::Read)?;
    Ok(shown(&*app.links.find_link(name, by).await?))
}

/// Replaces all rules of a link. Their priority is their place.
pub(super) async fn set(
    app: &App,
    target: &Target,
    given: &Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    require(by, Scope::Edit)?;
    // As in Shlink, a missing link is reported before anything about the body.
    app.links.find_link(&target.name, by).await?;
    let record = app.links.set_redirect_rules(target, read(app, given)?, by).await?;
    Ok(shown(&record.link))
}

fn shown(link: &Link) -> Answer {
    let condition = |condition: &Condition| {
        let (kind, key, value) = condition.parts();
        json!({ "type": kind, "matchKey": key, "matchValue": value })
    };
    let rule = |(place, rule): (usize, &Rule)| {
        let conditions: Vec<Value> = rule.conditions.iter().map(condition).collect();
        json!({ "longUrl": rule.long_url.as_str(), "priority": place + 1, "conditions": conditions })
    };
    let rules: Vec<Value> = link.rules().iter().enumerate().map(rule).collect();
    json(&json!({ "defaultLongUrl": link.long_url.as_str(), "redirectRules": rules }))
}

fn read(app: &App, given: &Map<String, Value>) -> Result<Vec<Rule>, AppError> {
    let mut wrong = FieldErrors::default();
    let mut rules = Vec::new();
    known(given, "", &["redirectRules"], &mut wrong);
    match given.get("redirectRules").and_then(Value::as_array) {
        Some(items) if items.len() <= RULES_MAX => {
            for (place, item) in items.iter().enumerate() {
                rules.extend(read_rule(app, &format!("redirectRules.{place}"), item, &mut wrong));
            }
        }
        _ => {
            let expected = format!("expected an array of at most {RULES_MAX} rules");
            wrong.note::<()>("redirectRules", Err(expected));
        }
    }
    wrong.finish().map(|()| rules)
}

fn read_rule(app: &App, at: &str, item: &Value, wrong: &mut FieldErrors) -> Option<Rule> {
    let Value::Object(fields) = item else {
        wrong.note::<()>(at, Err("expected an object with longUrl and conditions".to_owned()));
        return None;
    };
    known(fields, &format!("{at}."), &["longUrl", "conditions", "priority"], wrong);
    let long_url = wrong.note(&format!("{at}.longUrl"), read_target(app, fields));
    let conditions = match fields.get("conditions").and_then(Value::as_array) {
        Some(items) if items.len() <= CONDITIONS_MAX => items
            .iter()
            .enumerate()
            .filter_map(|(place, item)| read_condition(app, &format!("{at}.conditions.{place}"), item, wrong))
            .collect(),
        _ => {
            let expected = format!("expected an array of at most {CONDITIONS_MAX} conditions");
            wrong.note::<()>(&format!("{at}.conditions"), Err(expected));
            return None;
        }
    };
    Some(Rule { long_url: long_url?, conditions })
}

fn read_target(app: &App, fields: &Map<String, Value>) -> Result<LongUrl, String> {
    match fields.get(Field::LongUrl.name()) {
        Some(Value::String(text)) => app.links.check_long_url(text),
        _ => Err(Field::LongUrl.expected()),
    }
}

/// Notes fields that nobody knows: a misspelt one is to be heard of.
fn known(fields: &Map<String, Value>, at: &str, names: &[&str], wrong: &mut FieldErrors) {
    for name in fields.keys().filter(|name| !names.contains(&name.as_str())) {
        wrong.note::<()>(&format!("{at}{name}"), Err("expected no field of this name".to_owned()));
    }
}

/// A date and time that comes without an offset, with that of the server's zone: rules are kept as they are written, and are to mean the same
/// when the operator changes the zone. None for one that needs none.
fn with_offset(text: &str, zone: &TimeZone) -> Option<String> {
    let is_day = text.len() == "2030-12-31".len();
    let time =
        fields::local_time(text.trim(), zone).filter(|_| !is_day && text.parse::<Timestamp>().is_err())?;
    Some(time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

fn read_condition(app: &App, at: &str, item: &Value, wrong: &mut FieldErrors) -> Option<Condition> {
    if let Value::Object(fields) = item {
        known(fields, &format!("{at}."), &["type", "matchKey", "matchValue"], wrong);
    }
    let mut text = |name: &str| match item.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.as_str())),
        Some(_) => {
            wrong.note::<()>(&format!("{at}.{name}"), Err("expected a string, or null".to_owned()));
            None
        }
    };
    let (kind, key, value) = (text("type")?, text("matchKey")?, text("matchValue")?);
    let dated = value.filter(|_| matches!(kind, Some("before-date" | "after-date")));
    let moment = dated.and_then(|text| with_offset(text, &app.time_zone));
    let parsed = Condition::parse(kind.unwrap_or_default(), key, moment.as_deref().or(value));
    let field = parsed.as_ref().err().map_or("type", |error| error.field());
    wrong.note(&format!("{at}.{field}"), parsed.map_err(|error| error.to_string()))
}
