//! Target rules: hosts that links may or may not lead to.

use links::{api_key::ApiKeyId, audit::Action, targets::TargetRule};
use serde_json::json;

use super::{Sql, Value, audit::note, note_change};
use crate::Result;

/// Returns all rules, sorted by pattern.
pub(super) async fn targets(sql: &mut dyn Sql) -> Result<Vec<TargetRule>> {
    let rows = sql.query("SELECT pattern, allowed FROM target_rule ORDER BY pattern", &[]).await?;
    rows.iter().filter_map(|row| rule(row).transpose()).collect()
}

/// Reads a rule. A pattern that only a later release can read is left out: no host is known to
/// match it, and the other rules stay in force.
fn rule(row: &super::Row) -> Result<Option<TargetRule>> {
    let (pattern, allowed) = (row.text(0)?, row.flag(1)?);
    let rule = TargetRule::parse(pattern, allowed);
    if let Err(error) = &rule {
        tracing::warn!(pattern, %error, "skip a target rule of a later release");
    }
    Ok(rule.ok())
}

pub(crate) async fn set_target(sql: &mut dyn Sql, rule: &TargetRule, by: ApiKeyId) -> Result<()> {
    let set = "INSERT INTO target_rule (pattern, allowed) VALUES ($1, $2)
               ON CONFLICT (pattern) DO UPDATE SET allowed = excluded.allowed";
    sql.query(set, &[Value::Text(rule.pattern().to_owned()), Value::Bool(rule.is_allowed())]).await?;
    let details = json!({ "allowed": rule.is_allowed() });
    note(sql, by, Action::SetTarget, rule.pattern(), Some(details)).await?;
    note_change(sql).await
}

pub(crate) async fn remove_target(sql: &mut dyn Sql, pattern: &str, by: ApiKeyId) -> Result<bool> {
    let remove = "DELETE FROM target_rule WHERE pattern = $1 RETURNING pattern";
    let is_gone = !sql.query(remove, &[Value::Text(pattern.to_owned())]).await?.is_empty();
    if is_gone {
        note(sql, by, Action::RemoveTarget, pattern, None).await?;
        note_change(sql).await?;
    }
    Ok(is_gone)
}
