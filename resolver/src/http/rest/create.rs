//! `POST /rest/v3/short-urls`

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    fields::{self, Wrong},
    problem::{Invalid, Problem},
    short_url,
};
use crate::{
    api_key::ApiKeyId,
    create::{CreateError, Wishes},
    http::{Answer, App},
    links::{Details, Draft, Link, LongUrl, Record, Tag},
    store::Same,
};

/// Creates a link. Shlink answers 200, not 201.
pub(super) async fn create(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Answer, Problem> {
    let (draft, wishes) = read(app, fields, key)?;
    if let Some(found) = existing(app, &draft, &wishes).await? {
        return short_url::answer(app, &found);
    }
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

/// The link under the wished-for slug, if it is what is wished for otherwise too.
async fn existing(app: &App, draft: &Draft, wishes: &Wishes) -> Result<Option<Record>, Problem> {
    let (Some(slug), Some(_)) = (&wishes.slug, &wishes.same) else { return Ok(None) };
    let found = app.lookup.find_named(slug.as_str()).await.map_err(|_| Problem::Unavailable)?;
    let Some(link) = found.filter(|link| !link.is_deleted() && link.long_url == draft.long_url) else {
        return Ok(None);
    };
    let limits = |details: Option<&Details>| {
        details.map_or((None, None, None), |details| {
            (details.valid_since, details.valid_until, details.max_visits)
        })
    };
    let (wanted, has) = (limits(draft.details.as_deref()), limits(link.details.as_deref()));
    let agrees = wanted.0.is_none_or(|time| has.0 == Some(time))
        && wanted.1.is_none_or(|time| has.1 == Some(time))
        && wanted.2.is_none_or(|most| has.2 == Some(most));
    let tags = app.store.tags_of(link.id).await?;
    let has_tags = wishes.tags.is_empty()
        || wishes.tags.len() == tags.len() && wishes.tags.iter().all(|tag| tags.contains(tag));
    Ok((agrees && has_tags).then(|| Record { link: Link::clone(&link), tags }))
}

/// A link as a call for many of them takes it: it has its own way into the database, which knows neither slugs nor tags nor other links.
pub(super) fn draft(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Draft, Problem> {
    let (draft, wishes) = read(app, fields, key)?;
    let wished = [
        ("customSlug", wishes.slug.is_some()),
        ("tags", !wishes.tags.is_empty()),
        ("findIfExists", wishes.same.is_some()),
    ];
    let expected = "expected no value in a call for many links";
    let invalid = |field: &str| Invalid { field: field.to_owned(), expected: expected.to_owned() };
    let invalid: Vec<_> = wished.into_iter().filter(|(_, is)| *is).map(|(field, _)| invalid(field)).collect();
    if invalid.is_empty() { Ok(draft) } else { Err(Problem::InvalidData(invalid)) }
}

fn read(app: &App, given: &Map<String, Value>, key: ApiKeyId) -> Result<(Draft, Wishes), Problem> {
    let mut wrong = Wrong::default();
    let long_url = wrong.note("longUrl", fields::long_url(app, given.get("longUrl")));
    let (mut title, mut crawlable, mut forward_query) = (None, false, true);
    let mut finds = false;
    let (mut details, mut wishes) = (Details::default(), Wishes::default());
    fields::each(given, &mut wrong, |name, value| {
        match name {
            "longUrl" => {}
            "title" => title = fields::title(value)?,
            "crawlable" => crawlable = fields::flag(value)?.unwrap_or(false),
            "forwardQuery" => forward_query = fields::flag(value)?.unwrap_or(true),
            "customSlug" => wishes.slug = fields::slug(value)?,
            "tags" => wishes.tags = fields::tags(value)?.unwrap_or_default(),
            "maxVisits" => details.max_visits = fields::count(value)?,
            "findIfExists" => finds = fields::flag(value)?.unwrap_or(false),
            "validSince" => details.valid_since = fields::time(value)?,
            "validUntil" => details.valid_until = fields::time(value)?,
            _ => fields::without_effect(name, value)?,
        }
        Ok(())
    });
    wrong.check()?;
    let long_url = long_url.ok_or(Problem::Internal)?;
    let details = (!details.is_empty()).then(|| Box::new(details));
    if finds {
        wishes.same =
            Some(Same { digest: digest(given, &long_url, &wishes), lifetime: app.find_existing_for });
    }
    Ok((Draft { long_url, title, crawlable, forward_query, created_by: key, details }, wishes))
}

/// A digest of what makes two wishes the same, as Shlink has it: the long URL and, of the other fields, those that say something; the title and
/// the two flags do not count.
fn digest(given: &Map<String, Value>, long_url: &LongUrl, wishes: &Wishes) -> String {
    let mut tags: Vec<&str> = wishes.tags.iter().map(Tag::as_str).collect();
    tags.sort_unstable();
    let field = |name: &str| given.get(name).unwrap_or(&Value::Null);
    let time = |name: &str| fields::time(field(name)).ok().flatten().map(|time| time.as_millisecond());
    let wish = json!([long_url.as_str(), tags, time("validSince"), time("validUntil"), field("maxVisits")]);
    Sha256::digest(wish.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}
