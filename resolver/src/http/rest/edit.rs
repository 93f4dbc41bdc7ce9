//! `PATCH` and `DELETE /rest/v3/short-urls/{code}`

use hyper::{
    HeaderMap, StatusCode,
    header::{HeaderValue, IF_MATCH},
};
use serde_json::{Map, Value};

use super::{
    fields::{self, Wrong},
    get::find,
    problem::Problem,
    short_url,
};
use crate::{
    api_key::ApiKeyId,
    http::{Answer, App, empty},
    links::Edit,
    store::{Deleted, Edited},
};

/// Changes a link. As Shlink does, the body is checked before the link is looked up; null takes a time or a title away and leaves
/// everything else as it is. `If-Match` with the `ETag` of an answer keeps what others have changed since from being overwritten.
pub(super) async fn edit(
    app: &App,
    name: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    given: &Map<String, Value>,
    by: ApiKeyId,
) -> Result<Answer, Problem> {
    let mut edit = read(app, given)?;
    edit.versions = versions(headers);
    let link = find(app, name, query).await?;
    let edited = app.store.edit(link.id, &edit, by).await?;
    app.lookup.changed(link.id);
    match edited {
        Edited::Done(record) => short_url::answer(app, &record),
        Edited::Absent => Err(Problem::no_short_url(name, query)),
        Edited::Superseded => Err(Problem::Superseded),
    }
}

/// The versions of `If-Match` (RFC 9110); none without it, or when any will do. A tag that is not ours matches no link.
fn versions(headers: &HeaderMap) -> Option<Vec<u64>> {
    let lines: Vec<&[u8]> = headers.get_all(IF_MATCH).iter().map(HeaderValue::as_bytes).collect();
    let tags = lines.iter().flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    if lines.is_empty() || tags.clone().any(|tag| tag == b"*") {
        return None;
    }
    Some(tags.filter_map(short_url::version).collect())
}

fn read(app: &App, given: &Map<String, Value>) -> Result<Edit, Problem> {
    let (mut wrong, mut edit) = (Wrong::default(), Edit::default());
    fields::each(given, &mut wrong, |name, value| {
        match name {
            "longUrl" if value.is_null() => {}
            "longUrl" => edit.long_url = Some(fields::long_url(app, Some(value))?),
            "title" => edit.title = Some(fields::title(value)?),
            "crawlable" => edit.crawlable = fields::flag(value)?,
            "forwardQuery" => edit.forward_query = fields::flag(value)?,
            "tags" => edit.tags = fields::tags(value)?,
            "maxVisits" => edit.max_visits = Some(fields::count(value)?),
            "validSince" => edit.valid_since = Some(fields::time(value)?),
            "validUntil" => edit.valid_until = Some(fields::time(value)?),
            _ => fields::without_effect(name, value)?,
        }
        Ok(())
    });
    wrong.check().map(|()| edit)
}

/// Deletes a link. Its code stays with it, and is never minted again; a slug that a person picked can be picked again.
pub(super) async fn delete(
    app: &App,
    name: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    by: ApiKeyId,
) -> Result<Answer, Problem> {
    let link = find(app, name, query).await?;
    let deleted = app.store.delete(link.id, versions(headers).as_deref(), by).await?;
    app.lookup.changed(link.id);
    match deleted {
        Deleted::Done => Ok(empty(StatusCode::NO_CONTENT)),
        Deleted::Absent => Err(Problem::no_short_url(name, query)),
        Deleted::Superseded => Err(Problem::Superseded),
    }
}
