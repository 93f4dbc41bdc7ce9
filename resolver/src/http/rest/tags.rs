//! `/rest/v3/tags`

use hyper::StatusCode;
use links::{Tag, api_key::Grant};
use serde_json::{Map, Value, json};
use store::{Renamed, TagCount, Visible};

use super::{
    fields::Wrong,
    json,
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
};
use crate::http::{Answer, App, empty};

/// Tags that one answer may have.
const TAGS_MAX: usize = 100_000;

/// Lists tags, with or without what is known of them.
pub(super) async fn list(app: &App, query: &Query, with_stats: bool, by: &Grant) -> Result<Answer, Problem> {
    let paging = Paging::read(query).map_err(|(field, expected)| Problem::invalid(field, expected))?;
    if query.has_nul() {
        return Err(Problem::invalid("(the query)", "expected no NUL"));
    }
    let search = query.text("searchTerm").map(str::to_lowercase);
    let _turn = app.budgets.turn(by.id).await?;
    let mut tags = app.store.tags(search.as_deref(), TAGS_MAX, &visible(by)).await?;
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

/// The links that a key may know of.
pub(super) fn visible(by: &Grant) -> Visible {
    let created_by = Some(by.id).filter(|_| by.limits.own_links_only);
    Visible { domain: by.limits.domain, created_by }
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

/// Gives a tag another name.
pub(super) async fn rename(app: &App, given: &Map<String, Value>, by: &Grant) -> Result<Answer, Problem> {
    if by.limits.hides_links() {
        return Err(Problem::ForbiddenTags { what: "rename" });
    }
    let mut wrong = Wrong::default();
    for name in given.keys().filter(|name| !matches!(name.as_str(), "oldName" | "newName")) {
        wrong.note::<()>(name, Err("expected no field of this name".to_owned()));
    }
    let mut tag = |name| {
        let text = given.get(name).and_then(Value::as_str).ok_or_else(|| "expected a string".to_owned());
        let read = text.and_then(|text| Tag::exactly(text).map_err(|error| error.to_string()));
        wrong.note(name, read)
    };
    let (old, new) = (tag("oldName"), tag("newName"));
    wrong.check()?;
    let (Some(old), Some(new)) = (old, new) else { return Err(Problem::Internal) };
    let _turn = app.budgets.brief_turn(by.id).await?;
    match app.store.rename_tag(&old, &new, by.id).await? {
        Renamed::Done => Ok(empty(StatusCode::NO_CONTENT)),
        Renamed::Absent => Err(Problem::NoTag { tag: old.to_string() }),
        Renamed::Taken => Err(Problem::TagConflict { old: old.to_string(), new: new.to_string() }),
    }
}

/// Takes tags away; those that are not there are no error.
pub(super) async fn delete(app: &App, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    if by.limits.hides_links() {
        return Err(Problem::ForbiddenTags { what: "delete" });
    }
    let tags: Vec<Tag> = query.list("tags").filter_map(|text| Tag::exactly(text).ok()).collect();
    let _turn = app.budgets.brief_turn(by.id).await?;
    app.store.delete_tags(&tags, by.id).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
