//! `PATCH` and `DELETE /rest/v3/short-urls/{code}`

use app::{
    Field, FieldErrors,
    edit_link::{EditLink, Target},
};
use hyper::{
    HeaderMap, StatusCode,
    header::{HeaderValue, IF_MATCH},
};
use links::api_key::Grant;
use serde_json::{Map, Value};

use super::{fields, problem::Problem, short_url};
use crate::http::{Answer, App, empty};

/// Edits a link: null clears a time or a text. `If-Match` with the `ETag` of an answer keeps an edit
/// from overwriting a later one.
pub(super) async fn edit(
    app: &App,
    target: &Target,
    given: Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let (request, wrong) = read(app, given);
    short_url::answer(app, &app.links.edit_link(target, request, wrong, by).await?).await
}

/// Deletes a link.
pub(super) async fn delete(app: &App, target: &Target, by: &Grant) -> Result<Answer, Problem> {
    app.links.delete_link(target, by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The versions of `If-Match` (RFC 9110); `None` without it, or for `*`. A tag that is not ours
/// matches no link.
pub(super) fn versions(headers: &HeaderMap) -> Option<Vec<u64>> {
    let lines: Vec<&[u8]> = headers.get_all(IF_MATCH).iter().map(HeaderValue::as_bytes).collect();
    let tags = lines.iter().flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    if lines.is_empty() || tags.clone().any(|tag| tag == b"*") {
        return None;
    }
    Some(tags.filter_map(short_url::version).collect())
}

/// A field that Shlink's clients send back with an edit, and that never changes.
const SHORT_CODE: &str = "shortCode";

/// Fields that an edit passes over.
pub(super) fn passed_over() -> impl Iterator<Item = &'static str> {
    let of_creates = Field::ALL.into_iter().filter(|field| field.is_passed_over_by_edits());
    std::iter::once(SHORT_CODE).chain(of_creates.map(Field::name))
}

/// Reads the fields of an edit.
fn read(app: &App, given: Map<String, Value>) -> (EditLink, FieldErrors) {
    let (mut edit, mut wrong) = (EditLink::default(), FieldErrors::default());
    for (name, value) in given {
        let field = Field::parse(&name);
        wrong.begin(field);
        match field {
            Some(field) if field.is_passed_over_by_edits() => {}
            Some(field) => {
                let read = read_field(app, field, value, &mut edit);
                wrong.check(field, read);
            }
            None if name == SHORT_CODE => {}
            None => {
                wrong.note(&name, fields::without_effect(&name));
            }
        }
    }
    (edit, wrong)
}

fn read_field(app: &App, field: Field, value: Value, edit: &mut EditLink) -> Result<(), String> {
    match field {
        Field::LongUrl => edit.long_url = fields::text(field, value)?,
        Field::Title => edit.title = Some(fields::text(field, value)?),
        Field::Description => edit.description = Some(fields::text(field, value)?),
        Field::Tags => edit.tags = fields::texts(field, value)?,
        Field::ValidSince => edit.valid_since = Some(fields::time(app, &value)?),
        Field::ValidUntil => edit.valid_until = Some(fields::time(app, &value)?),
        Field::MaxVisits => edit.max_visits = Some(fields::number(field, &value)?),
        Field::Crawlable => edit.crawlable = fields::flag(&value)?,
        Field::ForwardQuery => edit.forward_query = fields::flag(&value)?,
        Field::Enabled => edit.enabled = fields::flag(&value)?,
        Field::RedirectStatus => edit.redirect_status = Some(fields::number(field, &value)?),
        Field::Password => edit.password = Some(fields::text(field, value)?),
        Field::CustomSlug
        | Field::PathPrefix
        | Field::ShortCodeLength
        | Field::Keyspace
        | Field::Strategy
        | Field::Domain
        | Field::FindIfExists => return fields::without_effect(field.name()),
    }
    Ok(())
}
