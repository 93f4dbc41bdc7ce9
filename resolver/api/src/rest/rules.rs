//! `GET` and `POST /rest/v3/short-urls/{code}/redirect-rules`

use app::{
    Field,
    redirect_rules::{ConditionFields, RuleFields, expected_conditions, expected_rules},
};
use links::{CONDITIONS_MAX, Condition, Link, RULES_MAX};
use serde_json::{Map, Value};

use super::{link_fields::answer_changed, prelude::*, read::read_object};

const RULES: &str = "/rest/v3/short-urls/{shortCode}/redirect-rules";
/// Maximum length of a body: a hundred rules with twenty short conditions each.
const BODY_BYTES: usize = 256 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, RULES, keyed!(Scope::Read, get))
            .document("getRedirectRules", Topic::Rules, "Show the rules of a link")
            .query::<dto::DomainQuery>()
            .answers::<dto::RedirectRules>("The rules, in the order in which they are tried."),
        Route::new(Method::POST, RULES, keyed!(Scope::Edit, set))
            .body_bytes(BODY_BYTES)
            .document("setRedirectRules", Topic::Rules, "Replace the rules of a link")
            .text("All rules are replaced at once; an empty array removes them. Their priority is their position. A missing link is reported before anything about the body.")
            .query::<dto::DomainQuery>()
            .header(Header::IfMatch)
            .body::<dto::NewRedirectRules>()
            .answers::<dto::ChangedRedirectRules>("The rules after the call; for a key without the scope `read`, the link's code and short URL.")
            .fails(&[Kind::LaterRelease]),
    ]
}

impl Fields for dto::NewRedirectRules {
    fn expected(_: &str) -> String {
        expected_rules()
    }
}

impl Fields for dto::NewRedirectRule {
    fn expected(field: &str) -> String {
        Field::parse(field).map_or_else(expected_conditions, Field::expected)
    }
}

impl Fields for dto::NewCondition {
    // Its schema has one part for each type.
    fn has(name: &str) -> bool {
        matches!(name, "type" | "matchKey" | "matchValue")
    }
}

async fn get(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    Ok(shown(&*call.api.links.get_redirect_rules(&call.link()?, by).await?))
}

async fn set(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::NewRedirectRules { redirect_rules }, wrong) = call.fields()?;
    let target = call.target()?;
    let rules = redirect_rules.map(|items| up_to(RULES_MAX, items).map(read_rule).collect());
    let zone = &call.api.time_zone;
    let record = call.api.links.set_redirect_rules(&target, rules, wrong, zone, by).await?;
    if by.may_read() { Ok(shown(&record.link)) } else { answer_changed(&call.api, &record, by).await }
}

fn shown(link: &Link) -> Answer {
    let condition = |condition: &Condition| {
        let (kind, match_key, match_value) = condition.parts();
        let [match_key, match_value] = [match_key, match_value].map(|text| text.map(str::to_owned));
        dto::Condition { r#type: kind.to_owned(), match_key, match_value }
    };
    let rules = link.rules().iter().enumerate().map(|(place, rule)| dto::RedirectRule {
        long_url: rule.long_url.as_str(),
        priority: place + 1,
        conditions: rule.conditions.iter().map(condition).collect(),
    });
    let redirect_rules = rules.collect();
    json(&dto::RedirectRules { default_long_url: link.long_url.as_str(), redirect_rules })
}

fn read_rule(item: Value) -> Result<RuleFields, String> {
    let Value::Object(fields) = item else {
        return Err("expected an object with longUrl and conditions".to_owned());
    };
    let (dto::NewRedirectRule { long_url, conditions, .. }, wrong) = read_object(fields);
    let conditions = conditions.map(|items| up_to(CONDITIONS_MAX, items).map(read_condition).collect());
    Ok(RuleFields { long_url, conditions, wrong })
}

/// Reads a condition. One that is no object has no fields, and so lacks its type.
fn read_condition(item: Value) -> ConditionFields {
    let mut fields = if let Value::Object(fields) = item { fields } else { Map::new() };
    let has_time = fields.get("type").and_then(Value::as_str).is_some_and(Condition::has_time);
    // Only a time may be a number. One of another condition stays one, which is refused.
    if let Some(value) = fields.get_mut("matchValue").filter(|value| has_time && value.is_number()) {
        let text = value.to_string();
        let seconds: Result<dto::Time, _> = serde_json::from_value(value.take());
        *value = Value::String(seconds.map_or(text, |dto::Time(seconds)| seconds));
    }
    let (dto::NewCondition { r#type, match_key, match_value }, wrong) = read_object(fields);
    ConditionFields {
        kind: r#type.value(),
        match_key: match_key.value(),
        match_value: match_value.value(),
        wrong,
    }
}

/// Returns the items to read of a list. One too many is read of a longer list, which the use case
/// refuses as a whole.
fn up_to(most: usize, items: Vec<Value>) -> impl Iterator<Item = Value> {
    items.into_iter().take(most + 1)
}
