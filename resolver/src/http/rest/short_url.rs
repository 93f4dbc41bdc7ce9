//! A link as Shlink shows it: these fields, in this order, always all of them.

use jiff::Timestamp;
use serde::Serialize;

use crate::{codes::Code, http::App, links::Link};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShortUrl<'a> {
    short_url: String,
    short_code: &'a str,
    long_url: &'a str,
    date_created: String,
    tags: [&'a str; 0],
    meta: Meta,
    domain: Option<&'a str>,
    title: Option<&'a str>,
    crawlable: bool,
    forward_query: bool,
    visits_summary: VisitsSummary,
    has_redirect_rules: bool,
}

/// Limits of a link. None can be set in this version, so none is shown.
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
    pub(super) fn of(app: &App, code: &'a Code, link: &'a Link) -> Self {
        Self {
            short_url: format!("{}/{code}", app.public_url),
            short_code: code.as_str(),
            long_url: link.long_url.as_str(),
            date_created: atom(link.created_at),
            tags: [],
            meta: Meta::default(),
            domain: None,
            title: link.title.as_deref(),
            crawlable: link.crawlable,
            forward_query: link.forward_query,
            visits_summary: VisitsSummary::default(),
            has_redirect_rules: false,
        }
    }
}

/// RFC 3339 with `+00:00` and whole seconds, as PHP's `DateTimeInterface::ATOM` writes it.
fn atom(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}
