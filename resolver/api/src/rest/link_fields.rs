//! The fields of a link between JSON and the application: how the fields of a request become a
//! command, and how a link becomes an answer.

use app::{
    Field, FieldErrors, LinkFields, PreviewFields, create_link::CreateLink, key_names::Names,
    values::read_time,
};
use dto::{Flag, Number, Patch, Time};
use hyper::header::{ETAG, HeaderValue};
use links::{ExternalId, ExtraPath, LongUrl, Preview, Record, Tag, api_key::Grant};
use serde_json::{Map, Value};
use store::VisitTotals;

use super::{
    json::{atom, json},
    problem::Problem,
    read::{Fields, UNKNOWN, object, read_fields, read_object},
    visit_json::summary,
};
use crate::Api;
use web::Answer;

/// The field with a reserved code, which only fills take.
pub(super) const SHORT_CODE: &str = "shortCode";

impl Fields for dto::LinkFields {
    const IGNORED: &[&str] = &dto::LinkFields::IGNORED;

    fn expected(field: &str) -> String {
        Field::parse(field).map_or_else(|| Self::refused(field), Field::expected)
    }

    fn refused(field: &str) -> String {
        match field {
            "meta" => "expected validSince, validUntil and maxVisits by themselves".to_owned(),
            _ => UNKNOWN.to_owned(),
        }
    }
}

pub(super) fn read_create(api: &Api, body: &[u8]) -> Result<(CreateLink, FieldErrors), Problem> {
    let (fields, mut wrong) = read_fields(body)?;
    let command = create_command(api, fields, &mut wrong);
    Ok((command, wrong))
}

/// Reads the body of an edit: its fields, and the slug that the link gets. Some fields of a create
/// are ignored, others refused. An empty slug is none: Shlink's clients have one form for both.
pub(super) fn read_edit(
    api: &Api,
    body: &[u8],
) -> Result<(LinkFields, Option<String>, FieldErrors), Problem> {
    Ok(read_edit_fields(api, object(body)?))
}

/// Reads the parsed body of an edit; see [`read_edit`].
pub(super) fn read_edit_fields(
    api: &Api,
    mut fields: Map<String, Value>,
) -> (LinkFields, Option<String>, FieldErrors) {
    fields.retain(|name, _| !dto::LinkFields::IGNORED_IN_EDITS.contains(&name.as_str()));
    let mut refused = dto::LinkFields::REFUSED_IN_EDITS.to_vec();
    refused.retain(|name| fields.shift_remove(*name).is_some());
    let (mut fields, mut wrong) = read_object::<dto::LinkFields>(fields);
    for name in refused {
        wrong.add(name, UNKNOWN);
    }
    let slug = std::mem::take(&mut fields.custom_slug).value().filter(|slug| !slug.is_empty());
    let edit = link_fields(api, fields, &mut wrong);
    (edit, slug, wrong)
}

/// Converts the fields of a create. A reserved code is none of them: a fill has taken it before.
pub(super) fn create_command(api: &Api, mut fields: dto::LinkFields, wrong: &mut FieldErrors) -> CreateLink {
    if !fields.short_code.is_absent() {
        wrong.note::<()>(SHORT_CODE, Err(UNKNOWN.to_owned()));
    }
    let text = |field: &mut Patch<String>| std::mem::take(field).value();
    CreateLink {
        custom_slug: text(&mut fields.custom_slug),
        path_prefix: text(&mut fields.path_prefix),
        short_code_length: fields.short_code_length.value().map(|Number(len)| len),
        keyspace: text(&mut fields.keyspace),
        strategy: text(&mut fields.strategy),
        domain: text(&mut fields.domain),
        external_id: text(&mut fields.external_id),
        find_if_exists: fields.find_if_exists.value().is_some_and(|Flag(finds)| finds),
        fetch_title: fields.fetch_title.value().is_some_and(|Flag(fetches)| fetches),
        fields: link_fields(api, fields, wrong),
    }
}

/// Converts the fields that creates and edits share.
fn link_fields(api: &Api, fields: dto::LinkFields, wrong: &mut FieldErrors) -> LinkFields {
    let number = |field: Patch<Number>| field.change().map(|value| value.map(|Number(number)| number));
    let flag = |field: Patch<Flag>| field.change().map(|value| value.map(|Flag(flag)| flag));
    let mut time = |field: Field, value: Patch<Time>| {
        let read = value.try_change(|Time(text)| read_time(&text, &api.time_zone));
        wrong.check(field, read).flatten()
    };
    LinkFields {
        valid_since: time(Field::ValidSince, fields.valid_since),
        valid_until: time(Field::ValidUntil, fields.valid_until),
        long_url: fields.long_url.change(),
        title: fields.title.change(),
        description: fields.description.change(),
        tags: fields.tags.change(),
        max_visits: number(fields.max_visits),
        crawlable: flag(fields.crawlable),
        forward_query: flag(fields.forward_query),
        enabled: flag(fields.enabled),
        redirect_status: number(fields.redirect_status),
        extra_path: fields.extra_path.change(),
        expired_url: fields.expired_url.change(),
        preview: fields.preview.change().map(|preview| preview.map(preview_fields)),
        password: fields.password.change(),
    }
}

fn preview_fields(preview: dto::NewSocialPreview) -> PreviewFields {
    let dto::NewSocialPreview { title, description, image } = preview;
    PreviewFields { title, description, image }
}

fn social_preview(preview: &Preview) -> dto::SocialPreview<'_> {
    dto::SocialPreview {
        title: preview.title.as_deref(),
        description: preview.description.as_deref(),
        image: preview.image.as_ref().map(LongUrl::as_str),
    }
}

/// Returns the fields of a body in a fixed order, without the password: the request that an
/// idempotency key belongs to. It is stored as a digest, so its form must not change.
pub(super) fn canonical(body: &[u8]) -> Result<String, Problem> {
    let mut fields: Map<String, Value> = object(body)?;
    fields.shift_remove(Field::Password.name());
    fields.sort_keys();
    Ok(Value::Object(fields).to_string())
}

/// Returns the reserved code that an item of a fill gives, as it gives it.
pub(super) fn given_code(item: &[u8], code: &Patch<String>) -> Value {
    match code {
        Patch::Set(code) => Value::from(code.as_str()),
        // Absent, null, or of another type, which only the item itself shows. Lists and objects are
        // not kept: their memory is not on the account of the call.
        _ => object(item)
            .ok()
            .and_then(|mut fields| fields.remove(SHORT_CODE))
            .filter(|code| !code.is_array() && !code.is_object())
            .unwrap_or_default(),
    }
}

/// Returns the name of a link. Returns `None` for a row that no code leads to, which this program
/// never writes.
pub(super) fn link_name(api: &Api, Record { link, .. }: &Record) -> Option<dto::ShortUrlName> {
    let Some(short_code) = api.lookup.name_of(link) else {
        tracing::error!(id = ?link.id, "no code leads to this link");
        return None;
    };
    let short_url = format!("{}/{short_code}", api.base(link.domain()));
    Some(dto::ShortUrlName { short_url, short_code })
}

/// Converts a link to its answer. Returns `None` as [`link_name`] does.
pub(super) fn short_url<'a>(
    api: &Api,
    record: &'a Record,
    names: &'a Names,
    visits: VisitTotals,
) -> Option<dto::ShortUrl<'a>> {
    let Record { link, tags } = record;
    let dto::ShortUrlName { short_url, short_code } = link_name(api, record)?;
    let details = link.details.as_deref();
    let deleted_at = details.and_then(|details| details.deleted_at);
    // A deleted link keeps its tags in its own row.
    let tags = details.filter(|_| deleted_at.is_some()).map_or(tags, |details| &details.deleted_tags);
    let limits = dto::LinkLimits {
        valid_since: details.and_then(|details| details.valid_since).map(atom),
        valid_until: details.and_then(|details| details.valid_until).map(atom),
        max_visits: details.and_then(|details| details.max_visits),
    };
    let blocked = details.and_then(|details| details.blocked.as_ref());
    Some(dto::ShortUrl {
        short_url,
        short_code,
        long_url: link.long_url.as_str(),
        date_created: atom(link.created_at),
        tags: tags.iter().map(Tag::as_str).collect(),
        meta: limits,
        domain: api.domain_cache.shown_name(link.domain()),
        title: link.title.as_deref(),
        crawlable: link.crawlable,
        forward_query: link.forward_query,
        visits_summary: summary(visits),
        has_redirect_rules: !link.rules().is_empty(),
        description: details.and_then(|details| details.description.as_deref()),
        enabled: !details.is_some_and(|details| details.disabled),
        redirect_status: link.details().status,
        extra_path: link.details().extra_path.map(ExtraPath::as_str),
        expired_url: link.details().expired_url.as_ref().map(LongUrl::as_str),
        preview: link.details().preview.as_ref().map(social_preview),
        has_password: link.password().is_some(),
        created_by: names.creator(link),
        edited_by: names.editor(link),
        edited_at: details.and_then(|details| details.edited_at).map(atom),
        version: details.map_or(0, |details| details.version),
        deleted_at: deleted_at.map(atom),
        blocked: blocked.map(|block| dto::Takedown { reason: &block.reason, date: atom(block.at) }),
        last_visit: visits.last.map(atom),
        external_id: link.details().external_id.as_ref().map(ExternalId::as_str),
    })
}

/// Answers the call that changed or created a link. A key without the scope `read` gets its name.
pub(super) async fn answer_changed(api: &Api, record: &Record, by: &Grant) -> Result<Answer, Problem> {
    if !by.may_read() {
        let name = link_name(api, record).ok_or(Problem::INTERNAL)?;
        return Ok(with_etag(json(&dto::ChangedShortUrl::Name(name)), record));
    }
    let names = api.links.names_for(record, by).await;
    let visits = api.links.visit_totals_of(record).await;
    answer_with(api, record, &names, visits)
}

pub(super) fn answer_with(
    api: &Api,
    record: &Record,
    names: &Names,
    visits: VisitTotals,
) -> Result<Answer, Problem> {
    let shown = short_url(api, record, names, visits).ok_or(Problem::INTERNAL)?;
    Ok(with_etag(json(&shown), record))
}

fn with_etag(mut answer: Answer, record: &Record) -> Answer {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", record.link.version())) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}
