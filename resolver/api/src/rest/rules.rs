//! `GET` and `POST /rest/v3/short-urls/{code}/redirect-rules`

use app::{AppError, Field, FieldErrors, local_time::local_time};
use hyper::Method;
use jiff::{Timestamp, tz::TimeZone};
use links::{CONDITIONS_MAX, Condition, Link, LongUrl, RULES_MAX, Rule, api_key::Grant, scope::Scope};
use serde_json::Value;

use super::{
    call::Call,
    docs::{Header, Kind, Topic},
    json::json,
    problem::Problem,
    read::{Fields, read_item},
    route::{Route, keyed},
};
use crate::Api;
use web::Answer;

const RULES: &str = "/rest/v3/short-urls/{shortCode}/redirect-rules";
/// Maximum length of a body: a hundred rules with twenty short conditions each.
const BODY_BYTES: usize = 256 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, RULES, keyed!(Scope::Read, get))
            .document("getRedirectRules", Topic::Rules, "Show the rules of a link")
            .query::<dto::DomainQuery>()
            .answers::<dto::RedirectRules>("The rules, in the order in which they are tried.")
            .fails(&[Kind::NoShortUrl]),
        Route::new(Method::POST, RULES, keyed!(Scope::Edit, set))
            .body_bytes(BODY_BYTES)
            .document("setRedirectRules", Topic::Rules, "Replace the rules of a link")
            .text("All rules are replaced at once; an empty array removes them. Their priority is their position. A missing link is reported before anything about the body.")
            .query::<dto::DomainQuery>()
            .header(Header::IfMatch)
            .body::<dto::NewRedirectRules>()
            .answers::<dto::RedirectRules>("The rules after the call.")
            .fails(&[Kind::MalformedBody, Kind::InvalidData, Kind::NoShortUrl, Kind::Superseded]),
    ]
}

impl Fields for dto::NewRedirectRules {
    fn expected(_: &str) -> String {
        format!("expected an array of at most {RULES_MAX} rules")
    }
}

impl Fields for dto::NewRedirectRule {
    fn expected(field: &str) -> String {
        match Field::parse(field) {
            Some(field) => field.expected(),
            None => format!("expected an array of at most {CONDITIONS_MAX} conditions"),
        }
    }
}

impl Fields for dto::NewCondition {
    fn expected(_: &str) -> String {
        "expected a string, or null".to_owned()
    }
}

async fn get(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    Ok(shown(&*call.api.links.find_link(&call.link()?, by).await?))
}

async fn set(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (fields, wrong) = call.fields()?;
    let target = call.target()?;
    // As in Shlink, a missing link is reported before anything about the body.
    call.api.links.find_link(&target.name, by).await?;
    let rules = read(&call.api, fields, wrong)?;
    Ok(shown(&call.api.links.set_redirect_rules(&target, rules, by).await?.link))
}

fn shown(link: &Link) -> Answer {
    let condition = |condition: &Condition| {
        let (kind, match_key, match_value) = condition.parts();
        dto::Condition { r#type: kind, match_key, match_value }
    };
    let rules = link.rules().iter().enumerate().map(|(place, rule)| dto::RedirectRule {
        long_url: rule.long_url.as_str(),
        priority: place + 1,
        conditions: rule.conditions.iter().map(condition).collect(),
    });
    let redirect_rules = rules.collect();
    json(&dto::RedirectRules { default_long_url: link.long_url.as_str(), redirect_rules })
}

fn read(api: &Api, fields: dto::NewRedirectRules, mut wrong: FieldErrors) -> Result<Vec<Rule>, AppError> {
    let items = fields.redirect_rules.filter(|items| items.len() <= RULES_MAX);
    let expected = || dto::NewRedirectRules::expected("redirectRules");
    let items = wrong.note("redirectRules", items.ok_or_else(expected)).unwrap_or_default();
    let read =
        |(place, item): (usize, &Value)| read_rule(api, &format!("redirectRules.{place}"), item, &mut wrong);
    let rules = items.iter().enumerate().filter_map(read).collect();
    wrong.finish().map(|()| rules)
}

fn read_rule(api: &Api, at: &str, item: &Value, wrong: &mut FieldErrors) -> Option<Rule> {
    if !item.is_object() {
        wrong.note::<()>(at, Err("expected an object with longUrl and conditions".to_owned()));
        return None;
    }
    let fields: dto::NewRedirectRule = read_item(item, at, wrong);
    let long_url = fields.long_url.ok_or_else(|| Field::LongUrl.expected());
    let long_url: Result<LongUrl, String> = long_url.and_then(|text| api.links.check_long_url(&text));
    let long_url = wrong.note(&format!("{at}.{}", Field::LongUrl.name()), long_url);
    let items = fields.conditions.filter(|items| items.len() <= CONDITIONS_MAX);
    let items = items.ok_or_else(|| dto::NewRedirectRule::expected("conditions"));
    let items = wrong.note(&format!("{at}.conditions"), items)?;
    let read = |(place, item): (usize, &Value)| {
        read_condition(api, &format!("{at}.conditions.{place}"), item, wrong)
    };
    let conditions = items.iter().enumerate().filter_map(read).collect();
    Some(Rule { long_url: long_url?, conditions })
}

fn read_condition(api: &Api, at: &str, item: &Value, wrong: &mut FieldErrors) -> Option<Condition> {
    let fields: dto::NewCondition = read_item(item, at, wrong);
    let (kind, key, value) =
        (fields.r#type.value().unwrap_or_default(), fields.match_key.value(), fields.match_value.value());
    let dated = value.as_deref().filter(|_| matches!(&*kind, "before-date" | "after-date"));
    let moment = dated.and_then(|text| with_offset(text, &api.time_zone));
    let parsed = Condition::parse(&kind, key.as_deref(), moment.as_deref().or(value.as_deref()));
    let field = parsed.as_ref().err().map_or("type", |error| error.field());
    wrong.note(&format!("{at}.{field}"), parsed.map_err(|error| error.to_string()))
}

/// Adds the server's offset to a date and time without one. Rules are stored as they are written,
/// and keep their meaning when the operator changes the zone. Returns `None` for a text that needs
/// none.
fn with_offset(text: &str, zone: &TimeZone) -> Option<String> {
    let is_day = text.len() == "2030-12-31".len();
    let time = local_time(text.trim(), zone).filter(|_| !is_day && text.parse::<Timestamp>().is_err())?;
    Some(time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}
