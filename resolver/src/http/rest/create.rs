//! `POST /rest/v3/short-urls`

use serde_json::{Map, Value};

use super::{
    fields::{self, Wrong},
    problem::{Invalid, Problem},
    short_url,
};
use crate::{
    api_key::ApiKeyId,
    create::{CreateError, Wishes},
    http::{Answer, App},
    links::{Details, Draft},
};

/// Creates a link. Shlink answers 200, not 201.
pub(super) async fn create(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Answer, Problem> {
    let (draft, wishes) = read(app, fields, key)?;
    let slug = wishes.slug.clone();
    let created = app.creator.create_full(draft, wishes).await.map_err(|error| match error {
        CreateError::Exhausted => Problem::Exhausted,
        CreateError::Taken => {
            Problem::SlugTaken { slug: slug.map_or(String::new(), |slug| slug.to_string()) }
        }
        CreateError::NoNumber | CreateError::NoStore | CreateError::Overloaded => Problem::Unavailable,
    })?;
    short_url::answer(app, &created)
}

/// A link as a call for many of them takes it: it has its own way into the database, which knows neither slugs nor tags.
pub(super) fn draft(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Draft, Problem> {
    let (draft, wishes) = read(app, fields, key)?;
    let wished = [("customSlug", wishes.slug.is_some()), ("tags", !wishes.tags.is_empty())];
    let expected = "expected no value in a call for many links";
    let invalid = |field: &str| Invalid { field: field.to_owned(), expected: expected.to_owned() };
    let invalid: Vec<_> = wished.into_iter().filter(|(_, is)| *is).map(|(field, _)| invalid(field)).collect();
    if invalid.is_empty() { Ok(draft) } else { Err(Problem::InvalidData(invalid)) }
}

fn read(app: &App, given: &Map<String, Value>, key: ApiKeyId) -> Result<(Draft, Wishes), Problem> {
    let mut wrong = Wrong::default();
    let long_url = wrong.note("longUrl", fields::long_url(app, given.get("longUrl")));
    let (mut title, mut crawlable, mut forward_query) = (None, false, true);
    let (mut details, mut wishes) = (Details::default(), Wishes::default());
    fields::each(given, &mut wrong, |name, value| {
        match name {
            "longUrl" => {}
            "title" => title = fields::title(value)?,
            "crawlable" => crawlable = fields::flag(value)?.unwrap_or(false),
            "forwardQuery" => forward_query = fields::flag(value)?.unwrap_or(true),
            "customSlug" => wishes.slug = fields::slug(value)?,
            "tags" => wishes.tags = fields::tags(value)?.unwrap_or_default(),
            "validSince" => details.valid_since = fields::time(value)?,
            "validUntil" => details.valid_until = fields::time(value)?,
            _ => fields::without_effect(name, value)?,
        }
        Ok(())
    });
    wrong.check()?;
    let long_url = long_url.ok_or(Problem::Internal)?;
    let details = (!details.is_empty()).then(|| Box::new(details));
    Ok((Draft { long_url, title, crawlable, forward_query, created_by: key, details }, wishes))
}
