//! `/rest/v3/targets`: hosts that links may lead to, or may not. An addition of ours.

use app::FieldErrors;
use links::{api_key::Grant, targets::TargetRule};
use serde_json::{Map, Value, json};

use super::{json, problem::Problem};
use crate::http::{Answer, App, empty};

/// Lists the rules.
pub(super) async fn list(app: &App, by: &Grant) -> Result<Answer, Problem> {
    let rules = app.links.target_rules(by).await?;
    let rule = |rule: &TargetRule| json!({ "pattern": rule.pattern(), "allowed": rule.is_allowed() });
    Ok(json(&json!({ "targets": { "data": rules.iter().map(rule).collect::<Vec<_>>() } })))
}

/// Adds a rule, or changes what it says.
pub(super) async fn set(app: &App, given: &Map<String, Value>, by: &Grant) -> Result<Answer, Problem> {
    let mut wrong = FieldErrors::default();
    let allowed =
        given.get("allowed").and_then(Value::as_bool).ok_or_else(|| "expected true or false".to_owned());
    let allowed = wrong.note("allowed", allowed);
    let rule = match given.get("pattern") {
        Some(Value::String(text)) => {
            TargetRule::parse(text, allowed.unwrap_or_default()).map_err(|error| error.to_string())
        }
        _ => Err("expected a string".to_owned()),
    };
    let rule = wrong.note("pattern", rule);
    for name in given.keys().filter(|name| !matches!(name.as_str(), "pattern" | "allowed")) {
        wrong.note::<()>(name, Err("expected no field of this name".to_owned()));
    }
    wrong.finish()?;
    let rule = rule.ok_or(Problem::INTERNAL)?;
    app.links.set_target_rule(&rule, by).await?;
    Ok(json(&json!({ "pattern": rule.pattern(), "allowed": rule.is_allowed() })))
}

/// Takes a rule away.
pub(super) async fn remove(app: &App, pattern: &str, by: &Grant) -> Result<Answer, Problem> {
    let decoded = percent_encoding::percent_decode_str(pattern).decode_utf8_lossy().into_owned();
    app.links.remove_target_rule(&decoded, by).await?;
    Ok(empty(hyper::StatusCode::NO_CONTENT))
}
