//! `GET /rest/v3/audit`: who wrote what, and when, the latest first. An addition of ours.

use app::audit::PER_PAGE;
use links::{
    api_key::Grant,
    audit::{Entry, tell},
};
use serde_json::{Value, json};

use super::{json, problem::Problem, query::Query, short_url::atom};
use crate::http::{Answer, App};

/// Lists entries before one of them.
pub(super) async fn list(app: &App, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let before = query.text("before").map(str::parse::<i64>).transpose();
    let before = before.map_err(|_| Problem::invalid("before", "expected the number of an entry"))?;
    let entries = app.links.audit_log(before, by).await?;
    let next = entries.last().filter(|_| entries.len() == PER_PAGE).map(|entry| entry.id);
    let shown: Vec<Value> = entries.iter().map(|entry| show(app, entry)).collect();
    Ok(json(&json!({ "audit": { "data": shown, "before": next } })))
}

fn show(app: &App, entry: &Entry) -> Value {
    let (subject, domain, details) = if entry.is_of_link() {
        let told = tell(&entry.subject, entry.details.as_ref());
        let code = || told.id.and_then(|id| app.lookup.code_of(id));
        // An entry whose code no keyspace has any more keeps its number.
        let name = told.slug.or_else(code).unwrap_or_else(|| entry.subject.clone());
        (name, app.directory.shown_name(told.domain), Some(told.details))
    } else {
        (entry.subject.clone(), None, entry.details.clone())
    };
    json!({
        "id": entry.id,
        "date": atom(entry.at),
        "apiKey": entry.by_name,
        "action": entry.action,
        "subject": subject,
        "domain": domain,
        "details": details,
    })
}
