//! `POST /rest/v3/short-urls`

use std::{collections::BTreeMap, sync::Arc};

use codes::{Code, KeyspaceIndex};
use hyper::{HeaderMap, header::HeaderValue};
use jiff::Timestamp;
use links::{
    Authority, Details, DomainId, Draft, Link, PasswordHash, Record, Slug, Tag,
    api_key::{ApiKeyId, Grant},
    scope::Scope,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use store::Same;

use super::{
    domains,
    fields::{self, Wrong},
    find,
    problem::{Invalid, Problem},
    short_url,
};
use crate::{
    create::{CodeWish, CreateError, Wishes},
    http::{Answer, App, budgets::Spent},
    key_names::Names,
};

/// Characters of a code from a digest, unless asked otherwise.
pub(super) const DIGEST_LEN: usize = 8;
/// The header of draft-ietf-httpapi-idempotency-key-header.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest one, in bytes.
pub(super) const IDEMPOTENCY_KEY_BYTES: usize = 255;

/// What a body asks for.
struct Asked {
    /// Without its details, which the domain and the password belong to as well.
    draft: Draft,
    details: Details,
    wishes: Wishes,
    domain: Option<Authority>,
    password: Option<String>,
    /// Whether the link that was made for the same wish before will do.
    finds: bool,
}

/// Creates a link. Shlink answers 200, not 201.
pub(super) async fn create(
    app: &App,
    fields: &Map<String, Value>,
    headers: &HeaderMap,
    by: &Grant,
) -> Result<Answer, Problem> {
    let key = headers.get(IDEMPOTENCY_KEY).map(HeaderValue::as_bytes);
    let record = create_record(app, fields, key, by).await?;
    // A key that reads no links is given its own only, but another may have edited it: which one, such a key is not told.
    if by.scopes.allow(Scope::Read) && !record.is_only_of(by.id) {
        return short_url::answer(app, &record).await;
    }
    short_url::answer_with(app, &record, &Names::only(by.id, &by.name))
}

/// Creates a link of these fields; a call with the same idempotency key and the same fields makes no other.
pub(in crate::http) async fn create_record(
    app: &App,
    fields: &Map<String, Value>,
    idempotency_key: Option<&[u8]>,
    by: &Grant,
) -> Result<Record, Problem> {
    let (draft, wishes) = prepare(app, fields, idempotency_key, by).await?;
    create_link(app, draft, wishes, by).await
}

/// What is to be created for whom: everything that takes time is looked up, and nothing is stored yet but a new domain.
async fn prepare(
    app: &App,
    given: &Map<String, Value>,
    idempotency_key: Option<&[u8]>,
    by: &Grant,
) -> Result<(Draft, Wishes), Problem> {
    let idempotency = idempotency(idempotency_key)?;
    let Asked { draft, mut details, mut wishes, domain, password, finds } = read(app, given, by.id)?;
    details.domain = domains::for_new_link(app, domain, by).await?;
    if let CodeWish::Picked(slug) = &wishes.code {
        let domain = details.domain.unwrap_or(DomainId::DEFAULT);
        domains::refuse_circle(app, [&draft.long_url], domain, slug.as_str())?;
    }
    if let Some(password) = password {
        // Boxed, because few creates need it and it would make the futures of all creates larger.
        details.password = Some(Box::pin(hash(app, by, password)).await?);
    }
    if finds {
        if details.password.is_some() {
            // Whether an existing link has this password is nobody's to find out this way.
            let expected = "expected no password together with findIfExists";
            return Err(Problem::invalid("password", expected));
        }
        let digest = digest(draft.long_url.as_str(), &details, &wishes, by);
        wishes.same = Some(Same { digest, lifetime: app.find_existing_for, fingerprint: None });
    } else if let Some(key) = idempotency {
        wishes.same = Some(Same {
            digest: hex(&json!(["idempotency", by.id, key]).to_string()),
            lifetime: app.idempotency_for,
            fingerprint: Some(fingerprint(given)),
        });
    }
    Ok((with(draft, details), wishes))
}

/// A draft with its details, if there is anything in them.
fn with(draft: Draft, details: Details) -> Draft {
    Draft { details: (!details.is_empty()).then(|| Box::new(details)), ..draft }
}

/// A digest of a call, whatever the order of its fields. Not of the password: a digest that is quick to compute would give it away.
fn fingerprint(given: &Map<String, Value>) -> String {
    let fields: BTreeMap<&String, &Value> = given.iter().filter(|(name, _)| *name != "password").collect();
    hex(&json!(fields).to_string())
}

/// Hashes the password of a link.
pub(super) async fn hash(app: &App, by: &Grant, password: String) -> Result<PasswordHash, Problem> {
    let hashed = app.locks.hash(by.id, password).await.ok_or(Problem::Unavailable)?;
    hashed.map_err(|error| Problem::invalid("password", error.to_string()))
}

fn idempotency(key: Option<&[u8]>) -> Result<Option<&str>, Problem> {
    let Some(key) = key else { return Ok(None) };
    let fits = |key: &&str| {
        (1..=IDEMPOTENCY_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    std::str::from_utf8(key).ok().filter(fits).map(Some).ok_or_else(|| {
        let expected = format!("expected 1 to {IDEMPOTENCY_KEY_BYTES} visible ASCII characters");
        Problem::invalid("Idempotency-Key", expected)
    })
}

async fn create_link(app: &App, draft: Draft, wishes: Wishes, by: &Grant) -> Result<Record, Problem> {
    if is_found(&wishes)
        && let Some(found) = Box::pin(existing(app, &draft, &wishes, by)).await?
    {
        app.creator.wait_until_shown(&found.link).await;
        return Ok(found);
    }
    let asked_again = wishes.same.is_some().then(|| (draft.clone(), wishes.clone()));
    let slug = match &wishes.code {
        CodeWish::Picked(slug) => slug.to_string(),
        _ => String::new(),
    };
    let domain = draft.domain();
    match app.creator.create_full(draft, wishes).await {
        Ok(created) => Ok(created),
        Err(CreateError::Exhausted) => Err(Problem::Exhausted),
        Err(CreateError::OtherWish) => Err(Problem::IdempotencyKeyReused),
        Err(CreateError::NoTurn(_)) => Err(Problem::TooMuchAtOnce(Spent::Own)),
        Err(CreateError::Taken) => {
            // Somebody else may have been faster with the same wish.
            let found = match asked_again {
                Some((draft, wishes)) if is_found(&wishes) => {
                    Box::pin(existing(app, &draft, &wishes, by)).await?
                }
                _ => None,
            };
            if let Some(found) = &found {
                app.creator.wait_until_shown(&found.link).await;
            }
            found.ok_or_else(|| Problem::SlugTaken { slug, domain: domains::shown_name(app, domain) })
        }
        // The next try finds that the domain is gone.
        Err(
            CreateError::NoNumber | CreateError::NoStore | CreateError::Overloaded | CreateError::NoDomain,
        ) => Err(Problem::Unavailable),
    }
}

/// Whether an existing link may fulfil the wish.
fn is_found(wishes: &Wishes) -> bool {
    wishes.same.as_ref().is_some_and(|same| same.fingerprint.is_none())
}

/// The link that there is already, if the wish may be fulfilled with one: that under the wished-for slug, if it is what is wished for otherwise
/// too, or any for the long URL.
async fn existing(app: &App, draft: &Draft, wishes: &Wishes, by: &Grant) -> Result<Option<Record>, Problem> {
    let CodeWish::Picked(slug) = &wishes.code else { return find::find(app, draft, wishes, by).await };
    let found = app.lookup.find_named(draft.domain(), slug.as_str()).await;
    let found = found.map_err(|_| Problem::Unavailable)?;
    let is_wished = |link: &Arc<Link>| {
        let details = (link.details.as_deref(), draft.details.as_deref());
        let is_disabled = |details: Option<&Details>| details.is_some_and(|details| details.disabled);
        let same_state = is_disabled(details.0) == is_disabled(details.1) && link.password().is_none();
        let same_status = draft
            .details
            .as_ref()
            .is_none_or(|wanted| wanted.status.is_none_or(|status| link.status() == Some(status)));
        let has_rules = link.details.as_ref().is_some_and(|details| !details.rules.is_empty());
        !link.is_deleted()
            && !link.is_blocked()
            && !has_rules
            && by.may_be_given(link)
            && link.long_url == draft.long_url
            && same_state
            && same_status
    };
    let Some(link) = found.filter(is_wished) else {
        return Ok(None);
    };
    // The copy may not have heard yet that somebody has changed or deleted it.
    let fresh = app.lookup.read_fresh(link.id).await.map_err(|_| Problem::Unavailable)?;
    let Some(link) = fresh.filter(is_wished) else {
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
    let _turn = app.budgets.brief_turn(by.id).await?;
    let tags = app.store.tags_of(link.id).await?;
    let has_tags = wishes.tags.is_empty()
        || wishes.tags.len() == tags.len() && wishes.tags.iter().all(|tag| tags.contains(tag));
    Ok((agrees && has_tags).then(|| Record { link: Link::clone(&link), tags }))
}

/// A link as a call for many of them takes it: it has its own way into the database, which knows neither slugs nor tags nor other links.
pub(super) fn draft(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Draft, Problem> {
    let Asked { draft, details, wishes, domain, password, finds } = read(app, fields, key)?;
    let wished = [
        (code_field(&wishes.code, fields), wishes.code != CodeWish::Next),
        ("tags", !wishes.tags.is_empty()),
        ("findIfExists", finds),
        ("domain", domain.is_some()),
        ("password", password.is_some()),
    ];
    let expected = "expected no value in a call for many links";
    let invalid = |field: &str| Invalid { field: field.to_owned(), expected: expected.to_owned() };
    let invalid: Vec<_> = wished.into_iter().filter(|(_, is)| *is).map(|(field, _)| invalid(field)).collect();
    if invalid.is_empty() { Ok(with(draft, details)) } else { Err(Problem::InvalidData(invalid)) }
}

fn read(app: &App, given: &Map<String, Value>, key: ApiKeyId) -> Result<Asked, Problem> {
    let mut wrong = Wrong::default();
    let long_url = wrong.note("longUrl", fields::long_url(app, given.get("longUrl")));
    let (mut title, mut crawlable, mut forward_query) = (None, false, true);
    let (mut finds, mut domain, mut password) = (false, None, None);
    let (mut details, mut wishes) = (Details::default(), Wishes::default());
    fields::each(given, &mut wrong, |name, value| {
        match name {
            "longUrl" => {}
            "title" => title = fields::title(value)?,
            "crawlable" => crawlable = fields::flag(value)?.unwrap_or(false),
            "forwardQuery" => forward_query = fields::flag(value)?.unwrap_or(true),
            "customSlug" | "pathPrefix" | "strategy" | "keyspace" | "shortCodeLength" => {}
            "tags" => wishes.tags = fields::tags(value)?.unwrap_or_default(),
            "maxVisits" => details.max_visits = fields::count(value)?,
            "findIfExists" => finds = fields::flag(value)?.unwrap_or(false),
            "validSince" => details.valid_since = fields::time(app, value)?,
            "validUntil" => details.valid_until = fields::time(app, value)?,
            "domain" => domain = fields::domain(app, value)?,
            "description" => details.description = fields::description(value)?,
            "enabled" => details.disabled = !fields::flag(value)?.unwrap_or(true),
            "redirectStatus" => details.status = fields::status(value)?,
            "password" => password = fields::password(value)?,
            _ => fields::without_effect(name)?,
        }
        Ok(())
    });
    wishes.code = read_code(app, given, &mut wrong);
    fields::window(details.valid_since, details.valid_until, &mut wrong);
    wrong.check()?;
    let long_url = long_url.ok_or(Problem::Internal)?;
    let draft = Draft { long_url, title, crawlable, forward_query, created_by: key, details: None };
    Ok(Asked { draft, details, wishes, domain, password, finds })
}

/// Which code is wished for. A slug is what it is, whatever else is said of the code, as with Shlink.
fn read_code(app: &App, given: &Map<String, Value>, wrong: &mut Wrong) -> CodeWish {
    let field = |name: &str| given.get(name).unwrap_or(&Value::Null);
    let prefix = wrong.note("pathPrefix", fields::prefix(field("pathPrefix"))).flatten();
    let slug = wrong.note("customSlug", fields::slug(field("customSlug"), prefix.as_deref())).flatten();
    let strategy = wrong.note("strategy", fields::strategy(field("strategy"))).unwrap_or_default();
    let len = wrong.note("shortCodeLength", fields::code_len(field("shortCodeLength"))).flatten();
    let named = match field("keyspace") {
        Value::Null => Ok(None),
        Value::String(name) => app.creator.keyspace(name).map(Some).ok_or(()),
        _ => Err(()),
    };
    let named = named.map_err(|()| "expected the name of a keyspace that codes are minted of".to_owned());
    let named = wrong.note("keyspace", named).flatten();
    if let Some(slug) = slug {
        return CodeWish::Picked(slug);
    }
    if strategy == fields::Strategy::Hash || prefix.is_some() {
        if named.is_some() {
            let expected = "expected no value with the strategy hash or a prefix".to_owned();
            wrong.note::<()>("keyspace", Err(expected));
        }
        let (prefix, len) = (prefix.unwrap_or_default(), len.unwrap_or(DIGEST_LEN));
        if prefix.len() + len > Slug::MAX_LEN {
            let expected = format!("expected at most {} with this prefix", Slug::MAX_LEN - prefix.len());
            wrong.note::<()>("shortCodeLength", Err(expected));
        }
        return CodeWish::Digest { prefix, len };
    }
    match (named, len) {
        (Some(index), Some(len)) if app.creator.code_len(index) != Some(len) => {
            let has = app.creator.code_len(index).unwrap_or_default();
            let expected = format!("expected {has}, the length of this keyspace's codes, or no value");
            wrong.note::<()>("shortCodeLength", Err(expected));
            CodeWish::Next
        }
        (Some(index), _) => of_keyspace(app, index),
        (None, Some(len)) => {
            // Codes of another length than the keyspaces have are not minted, so they come from a digest (D2). Those that are longer than
            // any keyspace's are so many that none has to be looked for: a digest would go through all links of the same URL.
            match app.creator.keyspace_of_len(len) {
                Some(index) => of_keyspace(app, index),
                None if len > Code::MAX_LEN => CodeWish::Random { len },
                None => CodeWish::Digest { prefix: String::new(), len },
            }
        }
        (None, None) => CodeWish::Next,
    }
}

/// The next code of a keyspace. That of the default one is what is given without a wish, whichever way it was asked for.
fn of_keyspace(app: &App, index: KeyspaceIndex) -> CodeWish {
    if index == app.creator.default_keyspace() { CodeWish::Next } else { CodeWish::In(index) }
}

/// The field to blame for a code that is not simply the next.
fn code_field(code: &CodeWish, given: &Map<String, Value>) -> &'static str {
    match code {
        CodeWish::Next | CodeWish::Picked(_) => "customSlug",
        CodeWish::In(_) if given.get("keyspace").is_some_and(|name| !name.is_null()) => "keyspace",
        CodeWish::Digest { prefix, .. } if !prefix.is_empty() => "pathPrefix",
        CodeWish::Digest { .. } if given.get("strategy").is_some_and(|name| name == "hash") => "strategy",
        CodeWish::In(_) | CodeWish::Digest { .. } | CodeWish::Random { .. } => "shortCodeLength",
    }
}

/// A digest of what makes two wishes the same, as Shlink has it: the long URL and, of the other fields, those that say something; the title and
/// the two flags do not count.
fn digest(long_url: &str, details: &Details, wishes: &Wishes, by: &Grant) -> String {
    let mut tags: Vec<&str> = wishes.tags.iter().map(Tag::as_str).collect();
    tags.sort_unstable();
    let time = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let code = match &wishes.code {
        CodeWish::Next => Value::Null,
        CodeWish::In(index) => json!(["keyspace", index.get()]),
        CodeWish::Picked(slug) => json!(["picked", Slug::as_str(slug)]),
        CodeWish::Random { len } => json!(["random", len]),
        CodeWish::Digest { prefix, len } if prefix.is_empty() => json!(["digest", len]),
        CodeWish::Digest { prefix, len } => json!(["digest", len, prefix]),
    };
    let limits = json!([time(details.valid_since), time(details.valid_until), details.max_visits]);
    let mut wish = vec![json!(long_url), json!(tags), limits, code];
    // What was wished for without them before has the digest that it had.
    wish.extend(details.domain.map(|domain| json!(["domain", domain])));
    wish.extend(details.status.map(|status| json!(["status", status])));
    wish.extend(details.disabled.then(|| json!("disabled")));
    wish.extend(by.finds_own_only().then(|| json!(["by", by.id])));
    hex(&Value::Array(wish).to_string())
}

fn hex(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
