//! A link as Shlink shows it: these fields, in this order, always all of them. What stands behind `hasRedirectRules` is an addition of ours.

use std::borrow::Cow;

use app::key_names::Names;
use hyper::header::{ETAG, HeaderValue};
use jiff::Timestamp;
use links::{DomainId, Record, RedirectStatus, Tag};
use serde::Serialize;

use super::{json, problem::Problem};
use crate::http::{Answer, App};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShortUrl<'a> {
    short_url: String,
    short_code: String,
    long_url: &'a str,
    date_created: String,
    tags: Vec<&'a str>,
    meta: Meta,
    domain: Option<String>,
    title: Option<&'a str>,
    crawlable: bool,
    forward_query: bool,
    visits_summary: VisitsSummary,
    has_redirect_rules: bool,
    description: Option<&'a str>,
    enabled: bool,
    redirect_status: Option<RedirectStatus>,
    has_password: bool,
    created_by: Option<&'a str>,
    edited_by: Option<&'a str>,
    edited_at: Option<String>,
    version: u64,
    deleted_at: Option<String>,
    blocked: Option<Takedown<'a>>,
}

/// Why and when an operator took a link down. With whose key is in the log, which tenants do not
/// read.
#[derive(Serialize)]
struct Takedown<'a> {
    reason: &'a str,
    date: String,
}

/// Limits of a link.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    valid_since: Option<String>,
    valid_until: Option<String>,
    max_visits: Option<u64>,
}

/// Visits are not stored in this version, so there are none to count.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct VisitsSummary {
    total: u64,
    non_bots: u64,
    bots: u64,
}

impl<'a> ShortUrl<'a> {
    /// None for a row that no code leads to: nobody wrote it here.
    pub(super) fn of(app: &App, record: &'a Record, names: &'a Names) -> Option<Self> {
        let Record { link, tags } = record;
        let Some(short_code) = app.lookup.name_of(link) else {
            tracing::error!(id = ?link.id, "no code leads to this link");
            return None;
        };
        let details = link.details.as_deref();
        let deleted_at = details.and_then(|details| details.deleted_at);
        // Nothing of a deleted link is lost but that it has the tags.
        let tags = details.filter(|_| deleted_at.is_some()).map_or(tags, |details| &details.deleted_tags);
        let meta = Meta {
            valid_since: details.and_then(|details| details.valid_since).map(atom),
            valid_until: details.and_then(|details| details.valid_until).map(atom),
            max_visits: details.and_then(|details| details.max_visits),
        };
        Some(Self {
            short_url: format!("{}/{short_code}", base(app, link.domain())),
            short_code,
            long_url: link.long_url.as_str(),
            date_created: atom(link.created_at),
            tags: tags.iter().map(Tag::as_str).collect(),
            meta,
            domain: app.directory.shown_name(link.domain()),
            title: link.title.as_deref(),
            crawlable: link.crawlable,
            forward_query: link.forward_query,
            visits_summary: VisitsSummary::default(),
            has_redirect_rules: !link.rules().is_empty(),
            description: details.and_then(|details| details.description.as_deref()),
            enabled: !details.is_some_and(|details| details.disabled),
            redirect_status: link.status(),
            has_password: link.password().is_some(),
            created_by: names.creator(link),
            edited_by: names.editor(link),
            edited_at: details.and_then(|details| details.edited_at).map(atom),
            version: details.map_or(0, |details| details.version),
            deleted_at: deleted_at.map(atom),
            blocked: details
                .and_then(|details| details.blocked.as_ref())
                .map(|block| Takedown { reason: &block.reason, date: atom(block.at) }),
        })
    }
}

/// What short links of a domain begin with.
pub(in crate::http) fn base(app: &App, domain: DomainId) -> Cow<'_, str> {
    if domain.is_default() { app.public_url.as_str().into() } else { app.directory.base(domain).into() }
}

/// A link by itself, with its version as `ETag`.
pub(super) async fn answer(app: &App, record: &Record) -> Result<Answer, Problem> {
    let names = app.links.names(std::slice::from_ref(record)).await;
    answer_with(app, record, &names)
}

/// The same with these names and no others.
pub(super) fn answer_with(app: &App, record: &Record, names: &Names) -> Result<Answer, Problem> {
    let mut answer = json(&ShortUrl::of(app, record, names).ok_or(Problem::INTERNAL)?);
    let version = record.link.details.as_ref().map_or(0, |details| details.version);
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        answer.headers_mut().insert(ETAG, tag);
    }
    Ok(answer)
}

/// The version that an `ETag` stands for.
pub(super) fn version(tag: &[u8]) -> Option<u64> {
    std::str::from_utf8(tag).ok()?.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}

/// RFC 3339 with `+00:00` and whole seconds, as PHP's `DateTimeInterface::ATOM` writes it.
pub(super) fn atom(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}
