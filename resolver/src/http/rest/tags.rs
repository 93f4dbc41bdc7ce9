//! `/rest/v3/tags`

use app::FieldErrors;
use hyper::StatusCode;
use links::api_key::Grant;
use serde_json::{Map, Value, json};
use store::TagCount;

use super::{
    json,
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
};
use crate::http::{Answer, App, empty};

/// Lists tags, with or without their counts.
pub(super) async fn list(app: &App, query: &Query, with_stats: bool, by: &Grant) -> Result<Answer, Problem> {
    let paging = Paging::read(query).map_err(|(field, expected)| Problem::invalid(field, expected))?;
    let mut tags = app.links.tags(query.text("searchTerm"), by).await?;
    order(&mut tags, query.text("orderBy").unwrap_or("tag"));
    let total = tags.len() as u64;
    let tags: Vec<Value> = paging
        .of(tags)
        .iter()
        .map(|tag| if with_stats { stats(tag) } else { json!(tag.tag.as_str()) })
        .collect();
    let pagination = pagination(paging, tags.len(), total);
    Ok(json(&json!({ "tags": { "data": tags, "pagination": pagination } })))
}

/// As Shlink does, an order that it does not know is that of the names.
fn order(tags: &mut [TagCount], by: &str) {
    let (field, direction) = by.split_once('-').unwrap_or((by, "ASC"));
    if field == "shortUrlsCount" {
        tags.sort_by_key(|tag| tag.links);
    }
    if direction == "DESC" {
        tags.reverse();
    }
}

/// Visits are not counted in this version.
fn stats(tag: &TagCount) -> Value {
    let visits = json!({ "total": 0, "nonBots": 0, "bots": 0 });
    json!({ "tag": tag.tag.as_str(), "shortUrlsCount": tag.links, "visitsSummary": visits })
}

/// Renames a tag.
pub(super) async fn rename(app: &App, given: &Map<String, Value>, by: &Grant) -> Result<Answer, Problem> {
    let mut wrong = FieldErrors::default();
    for name in given.keys().filter(|name| !matches!(name.as_str(), "oldName" | "newName")) {
        wrong.note::<()>(name, Err("expected no field of this name".to_owned()));
    }
    let name = |field| given.get(field).and_then(Value::as_str);
    app.links.rename_tag(name("oldName"), name("newName"), wrong, by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Deletes tags.
pub(super) async fn delete(app: &App, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    app.links.delete_tags(query.list("tags"), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
