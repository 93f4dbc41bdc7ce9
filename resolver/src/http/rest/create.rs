//! `POST /rest/v3/short-urls`

use std::collections::BTreeMap;

use app::{
    Field, FieldErrors,
    create_link::{CreateLink, IdempotencyKey},
};
use hyper::{HeaderMap, header::HeaderValue};
use links::{
    Draft,
    api_key::{ApiKeyId, Grant},
};
use serde_json::{Map, Value, json};

use super::{fields, problem::Problem, short_url};
use crate::http::{Answer, App};

/// The header of draft-ietf-httpapi-idempotency-key-header.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Creates a link. Shlink answers 200, not 201.
pub(super) async fn create(
    app: &App,
    given: Map<String, Value>,
    headers: &HeaderMap,
    by: &Grant,
) -> Result<Answer, Problem> {
    let key = headers.get(IDEMPOTENCY_KEY).map(HeaderValue::as_bytes);
    let idempotency = key.map(|key| IdempotencyKey::new(key, canonical(&given))).transpose()?;
    let (request, wrong) = read(app, given);
    let record = app.links.create_link(request, idempotency, wrong, by).await?;
    short_url::answer_with(app, &record, &app.links.names_for_creator(&record, by).await)
}

/// Reads a link of a call for many.
pub(super) fn draft(app: &App, given: Map<String, Value>, by: ApiKeyId) -> Result<Draft, Problem> {
    let (request, wrong) = read(app, given);
    Ok(app.links.check_plain_create(request, wrong, by)?)
}

/// The fields of a body in one order, without the password.
fn canonical(given: &Map<String, Value>) -> String {
    let is_kept = |(name, _): &(&String, &Value)| *name != Field::Password.name();
    let fields: BTreeMap<&String, &Value> = given.iter().filter(is_kept).collect();
    json!(fields).to_string()
}

/// Reads the fields of a new link.
fn read(app: &App, given: Map<String, Value>) -> (CreateLink, FieldErrors) {
    let (mut link, mut wrong) = (CreateLink::default(), FieldErrors::default());
    for (name, value) in given {
        let field = Field::parse(&name);
        wrong.begin(field);
        let Some(field) = field else {
            wrong.note(&name, fields::without_effect(&name));
            continue;
        };
        let read = read_field(app, field, value, &mut link);
        wrong.check(field, read);
    }
    (link, wrong)
}

fn read_field(app: &App, field: Field, value: Value, link: &mut CreateLink) -> Result<(), String> {
    match field {
        Field::LongUrl => link.long_url = Some(fields::text(field, value)?.ok_or_else(|| field.expected())?),
        Field::Title => link.title = fields::text(field, value)?,
        Field::Description => link.description = fields::text(field, value)?,
        Field::Tags => link.tags = fields::texts(field, value)?.unwrap_or_default(),
        Field::ValidSince => link.valid_since = fields::time(app, &value)?,
        Field::ValidUntil => link.valid_until = fields::time(app, &value)?,
        Field::MaxVisits => link.max_visits = fields::number(field, &value)?,
        Field::Crawlable => link.crawlable = fields::flag(&value)?,
        Field::ForwardQuery => link.forward_query = fields::flag(&value)?,
        Field::Enabled => link.enabled = fields::flag(&value)?,
        Field::RedirectStatus => link.redirect_status = fields::number(field, &value)?,
        Field::Password => link.password = fields::text(field, value)?,
        Field::CustomSlug => link.custom_slug = fields::text(field, value)?,
        Field::PathPrefix => link.path_prefix = fields::text(field, value)?,
        Field::ShortCodeLength => link.short_code_length = fields::number(field, &value)?,
        Field::Keyspace => link.keyspace = fields::text(field, value)?,
        Field::Strategy => link.strategy = fields::text(field, value)?,
        Field::Domain => link.domain = fields::text(field, value)?,
        Field::FindIfExists => link.find_if_exists = fields::flag(&value)?.unwrap_or(false),
    }
    Ok(())
}
