//! `/rest/v3/targets`: rules for the hosts that links may lead to. An addition to Shlink's API.

use links::targets::TargetRule;

use super::prelude::*;

const TARGETS: &str = "/rest/v3/targets";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, TARGETS, keyed!(Scope::Admin, list))
            .document("listTargets", Topic::Targets, "List target rules")
            .addition()
            .answers::<dto::TargetList>("All rules."),
        Route::new(Method::PUT, TARGETS, keyed!(Scope::Admin, set))
            .document("setTarget", Topic::Targets, "Add or change a target rule")
            .addition()
            .text("The longest pattern that matches a host decides. The pattern `*` matches every host. A host without a matching pattern is allowed, so only a rule that denies `*` turns the others into an allow-list. Links to a denied host stop redirecting on every resolver within a second, until the rule is removed.")
            .body::<dto::Target>()
            .answers::<dto::Target>("The rule, with its pattern as it is stored."),
        Route::new(Method::DELETE, "/rest/v3/targets/{pattern}", keyed!(Scope::Admin, remove))
            .document("removeTarget", Topic::Targets, "Remove a target rule")
            .addition()
            .done("The rule is removed."),
    ]
}

impl Fields for dto::Target {}

fn shown(rule: &TargetRule) -> dto::Target {
    dto::Target { pattern: Some(rule.pattern().to_owned()), allowed: Some(rule.is_allowed()) }
}

async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let rules = call.api.links.target_rules(by).await?;
    let data = rules.iter().map(shown).collect();
    Ok(json(&dto::TargetList { targets: dto::Data { data } }))
}

async fn set(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::Target { pattern, allowed }, mut wrong) = call.fields()?;
    let missing = |field| move || <dto::Target as Fields>::expected(field);
    let allowed = wrong.note("allowed", allowed.ok_or_else(missing("allowed")));
    let pattern = pattern.ok_or_else(missing("pattern"));
    let rule = pattern.and_then(|pattern| {
        TargetRule::parse(&pattern, allowed.unwrap_or_default()).map_err(|error| error.to_string())
    });
    let rule = wrong.note("pattern", rule);
    wrong.finish_by_name()?;
    let rule = rule.ok_or(Problem::INTERNAL)?;
    call.api.links.set_target_rule(&rule, by).await?;
    Ok(json(&shown(&rule)))
}

async fn remove(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.remove_target_rule(&call.parameter(), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
