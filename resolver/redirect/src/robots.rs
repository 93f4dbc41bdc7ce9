//! `GET|HEAD /robots.txt` (RFC 9309): allows crawlers the links marked `crawlable`, and disallows
//! everything else.
//!
//! 1. A domain lists its own links and those of the default domain, which redirect its visitors as
//!    well.
//! 2. Requests are few. A text is cached for a minute, and concurrent requests share one read.
//! 3. Crawlers need not read more than 500 KiB. If the links do not fit, the latest are listed.

use std::{sync::Arc, time::Duration};

use app::list_links::pieces;
use codes::LinkId;
use hyper::{StatusCode, body::Bytes};
use links::PER_PAGE_MAX;
use links::{DomainId, Filter, OrderBy, OrderField};
use moka::future::Cache;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use store::StoreError;
use web::{Answer, TEXT, answer};

use crate::{Redirector, fallback_page::unavailable};

/// The time for which a text is cached.
const BELIEVED: Duration = Duration::from_secs(60);
/// The maximum number of domains with a cached text.
const DOMAINS: u64 = 100;
/// The maximum length of a text, in bytes.
const TEXT_MAX: usize = 500 * 1024;
const HEAD: &str = "# https://www.rfc-editor.org/rfc/rfc9309\n\nUser-agent: *\n";
const TAIL: &str = "Disallow: /\n";
/// Characters that are special in a rule or not allowed in a path are escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The cached text of each domain.
pub struct Robots {
    texts: Cache<DomainId, Bytes>,
}

impl Robots {
    /// Creates an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self { texts: Cache::builder().max_capacity(DOMAINS).time_to_live(BELIEVED).build() }
    }
}

impl Default for Robots {
    fn default() -> Self {
        Self::new()
    }
}

/// Answers with a host's rules for crawlers.
pub async fn show(redirector: &Arc<Redirector>, host: Option<&str>) -> Answer {
    let place = redirector.domain_cache.place(host);
    if place.domain.settings.disabled {
        return answer(StatusCode::OK, TEXT, format!("{HEAD}{TAIL}"));
    }
    let (domain, reader) = (place.domain.id, Arc::clone(redirector));
    // On the daemon's own runtime, because requests of other connections may share this read.
    let read = redirector.runtime.spawn(async move {
        reader.robots.texts.try_get_with(domain, read(&reader, domain)).await.map_err(|error| {
            tracing::warn!(error = &*error as &dyn std::error::Error, "list links for crawlers");
        })
    });
    match read.await {
        Ok(Ok(text)) => answer(StatusCode::OK, TEXT, text),
        // A crawler that receives this status visits nothing until it receives another.
        Ok(Err(())) | Err(_) => unavailable(redirector),
    }
}

async fn read(redirector: &Redirector, domain: DomainId) -> Result<Bytes, StoreError> {
    let mut text = HEAD.to_owned();
    let now = redirector.domain_cache.now();
    let both = [domain, DomainId::DEFAULT];
    for domain in &both[usize::from(domain.is_default())..] {
        let filter = Filter {
            domain: Some(*domain),
            crawlable: true,
            order: OrderBy { field: OrderField::DateCreated, descending: true },
            per_page: Some(PER_PAGE_MAX),
            ..Filter::default()
        };
        let outline = redirector.catalog.outline(&filter, None).await?;
        'links: for piece in pieces(&outline.entries) {
            let ids: Vec<LinkId> = piece.iter().map(|entry| entry.id).collect();
            let records = redirector.catalog.records(&ids).await?;
            let live = records.iter().map(|record| &record.link).filter(|link| link.is_live(now));
            for name in live.filter_map(|link| redirector.lookup.name_of(link)) {
                // `$` anchors the rule: without it, it would match every path with this prefix.
                let rule = format!("Allow: /{}$\n", utf8_percent_encode(&name, ESCAPED));
                if text.len() + rule.len() + TAIL.len() > TEXT_MAX {
                    break 'links;
                }
                text.push_str(&rule);
            }
        }
    }
    text.push_str(TAIL);
    Ok(text.into())
}
