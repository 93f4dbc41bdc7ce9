//! `GET /rest/v3/audit`: who wrote what, and when, the latest first. An addition of ours.

use serde_json::{Value, json};

use super::{json, problem::Problem, query::Query, short_url::atom};
use crate::{
    audit::Entry,
    http::{Answer, App},
};

/// Entries of a page.
pub(super) const PER_PAGE: usize = 100;

/// Lists entries before one of them.
pub(super) async fn list(app: &App, query: &Query) -> Result<Answer, Problem> {
    let before = query.text("before").map(str::parse::<i64>).transpose();
    let before = before.map_err(|_| Problem::invalid("before", "expected the number of an entry"))?;
    let entries = app.store.audit(before, PER_PAGE).await?;
    let next = entries.last().filter(|_| entries.len() == PER_PAGE).map(|entry| entry.id);
    let shown: Vec<Value> = entries.iter().map(show).collect();
    Ok(json(&json!({ "audit": { "data": shown, "before": next } })))
}

fn show(entry: &Entry) -> Value {
    json!({
        "id": entry.id,
        "date": atom(entry.at),
        "apiKey": entry.by_name,
        "action": entry.action,
        "subject": entry.subject,
        "details": entry.details,
    })
}
