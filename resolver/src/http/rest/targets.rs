//! `/rest/v3/targets`: hosts that links may lead to, or may not. An addition of ours.

use links::{api_key::Grant, targets::TargetRule};
use serde_json::{Map, Value, json};

use super::{fields::Wrong, json, problem::Problem};
use crate::http::{Answer, App, empty};

/// Lists the rules.
pub(super) async fn list(app: &App) -> Result<Answer, Problem> {
    let settings = app.store.poll_settings(None).await?.settings.unwrap_or_default();
    let rule = |rule: &TargetRule| json!({ "pattern": rule.pattern(), "allowed": rule.is_allowed() });
    Ok(json(&json!({ "targets": { "data": settings.targets.iter().map(rule).collect::<Vec<_>>() } })))
}

/// Adds a rule, or changes what it says.
pub(super) async fn set(app: &App, given: &Map<String, Value>, by: &Grant) -> Result<Answer, Problem> {
    let mut wrong = Wrong::default();
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
    wrong.check()?;
    let rule = rule.ok_or(Problem::Internal)?;
    let _turn = app.budgets.brief_turn(by.id).await?;
    app.directory.set_target(&rule, true, by.id).await?;
    Ok(json(&json!({ "pattern": rule.pattern(), "allowed": rule.is_allowed() })))
}

/// Takes a rule away.
pub(super) async fn remove(app: &App, pattern: &str, by: &Grant) -> Result<Answer, Problem> {
    let decoded = percent_encoding::percent_decode_str(pattern).decode_utf8_lossy().into_owned();
    let missing = || Problem::NoTarget { pattern: decoded.clone() };
    let rule = TargetRule::parse(&decoded, false).map_err(|_| missing())?;
    let _turn = app.budgets.brief_turn(by.id).await?;
    if app.directory.set_target(&rule, false, by.id).await? {
        Ok(empty(hyper::StatusCode::NO_CONTENT))
    } else {
        Err(missing())
    }
}
