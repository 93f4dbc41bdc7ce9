//! `POST /rest/v3/short-urls`

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    fields::{self, Wrong},
    problem::{Invalid, Problem},
    short_url,
};
use crate::{
    api_key::ApiKeyId,
    codes::KeyspaceIndex,
    create::{CodeWish, CreateError, Wishes},
    http::{Answer, App},
    links::{Details, Draft, Link, LongUrl, Record, Tag},
    store::Same,
};

/// Characters of a code from a digest, unless asked otherwise.
const DIGEST_LEN: usize = 8;

/// Creates a link. Shlink answers 200, not 201.
pub(super) async fn create(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Answer, Problem> {
    let (draft, wishes) = read(app, fields, key)?;
    if let Some(found) = existing(app, &draft, &wishes).await? {
        return short_url::answer(app, &found);
    }
    let asked_again = wishes.same.is_some().then(|| (draft.clone(), wishes.clone()));
    let slug = match &wishes.code {
        CodeWish::Picked(slug) => slug.to_string(),
        _ => String::new(),
    };
    let created = match app.creator.create_full(draft, wishes).await {
        Ok(created) => created,
        Err(CreateError::Exhausted) => return Err(Problem::Exhausted),
        Err(CreateError::Taken) => {
            // Somebody else may have been faster with the same wish.
            let found = match asked_again {
                Some((draft, wishes)) => existing(app, &draft, &wishes).await?,
                None => None,
            };
            found.ok_or(Problem::SlugTaken { slug })?
        }
        Err(CreateError::NoNumber | CreateError::NoStore | CreateError::Overloaded) => {
            return Err(Problem::Unavailable);
        }
    };
    short_url::answer(app, &created)
}

/// The link under the wished-for slug, if it is what is wished for otherwise too.
async fn existing(app: &App, draft: &Draft, wishes: &Wishes) -> Result<Option<Record>, Problem> {
    let (CodeWish::Picked(slug), Some(_)) = (&wishes.code, &wishes.same) else { return Ok(None) };
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
        (code_field(&wishes.code), wishes.code != CodeWish::Next),
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
            "customSlug" | "strategy" | "keyspace" | "shortCodeLength" => {}
            "tags" => wishes.tags = fields::tags(value)?.unwrap_or_default(),
            "maxVisits" => details.max_visits = fields::count(value)?,
            "findIfExists" => finds = fields::flag(value)?.unwrap_or(false),
            "validSince" => details.valid_since = fields::time(value)?,
            "validUntil" => details.valid_until = fields::time(value)?,
            _ => fields::without_effect(name, value)?,
        }
        Ok(())
    });
    wishes.code = read_code(app, given, &mut wrong);
    wrong.check()?;
    let long_url = long_url.ok_or(Problem::Internal)?;
    if finds {
        wishes.same =
            Some(Same { digest: digest(&long_url, &details, &wishes), lifetime: app.find_existing_for });
    }
    let details = (!details.is_empty()).then(|| Box::new(details));
    Ok((Draft { long_url, title, crawlable, forward_query, created_by: key, details }, wishes))
}

/// Which code is wished for. A slug is what it is, whatever else is said of the code, as with Shlink.
fn read_code(app: &App, given: &Map<String, Value>, wrong: &mut Wrong) -> CodeWish {
    let field = |name: &str| given.get(name).unwrap_or(&Value::Null);
    let slug = wrong.note("customSlug", fields::slug(field("customSlug"))).flatten();
    let strategy = wrong.note("strategy", fields::strategy(field("strategy"))).unwrap_or_default();
    let len = wrong.note("shortCodeLength", fields::code_len(field("shortCodeLength"))).flatten();
    let named = match field("keyspace") {
        Value::Null => Ok(None),
        Value::String(name) => app.creator.keyspace(name).map(Some).ok_or(()),
        _ => Err(()),
    };
    let named = named.map_err(|()| "expected the name of one of the keyspaces".to_owned());
    let named = wrong.note("keyspace", named).flatten();
    if let Some(slug) = slug {
        return CodeWish::Picked(slug);
    }
    if strategy == fields::Strategy::Hash {
        if named.is_some() {
            wrong.note::<()>("keyspace", Err("expected no value with the strategy hash".to_owned()));
        }
        return CodeWish::Digest(len.unwrap_or(DIGEST_LEN));
    }
    match (named, len) {
        (Some(index), Some(len)) if app.creator.code_len(index) != Some(len) => {
            let has = app.creator.code_len(index).unwrap_or_default();
            let expected = format!("expected {has}, the length of this keyspace's codes, or no value");
            wrong.note::<()>("shortCodeLength", Err(expected));
            CodeWish::Next
        }
        (Some(index), _) => of_keyspace(app, index),
        // Without a keyspace of that length the URL's digest gives the code: any length is to be had.
        (None, Some(len)) => {
            app.creator.keyspace_of_len(len).map_or(CodeWish::Digest(len), |index| of_keyspace(app, index))
        }
        (None, None) => CodeWish::Next,
    }
}

/// The next code of a keyspace. That of the default one is what is given without a wish, whichever way it was asked for.
fn of_keyspace(app: &App, index: KeyspaceIndex) -> CodeWish {
    if index == app.creator.default_keyspace() { CodeWish::Next } else { CodeWish::In(index) }
}

/// The field to blame for a code that is not simply the next.
fn code_field(code: &CodeWish) -> &'static str {
    match code {
        CodeWish::Next | CodeWish::Picked(_) => "customSlug",
        CodeWish::In(_) => "keyspace",
        CodeWish::Digest(_) => "strategy",
    }
}

/// A digest of what makes two wishes the same, as Shlink has it: the long URL and, of the other fields, those that say something; the title and
/// the two flags do not count.
fn digest(long_url: &LongUrl, details: &Details, wishes: &Wishes) -> String {
    let mut tags: Vec<&str> = wishes.tags.iter().map(Tag::as_str).collect();
    tags.sort_unstable();
    let time = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let code = match &wishes.code {
        CodeWish::Next => Value::Null,
        CodeWish::In(index) => json!(["keyspace", index.get()]),
        CodeWish::Picked(slug) => json!(["picked", slug.as_str()]),
        CodeWish::Digest(len) => json!(["digest", len]),
    };
    let limits = json!([time(details.valid_since), time(details.valid_until), details.max_visits]);
    let wish = json!([long_url.as_str(), tags, limits, code]);
    Sha256::digest(wish.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}
