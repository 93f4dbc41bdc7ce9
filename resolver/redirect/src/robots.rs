//! `GET|HEAD /robots.txt` (RFC 9309): crawlers may follow the links of which that was said (`crawlable`), and look at nothing else.
//!
//! 1. On a domain the links are its own and the default one's, by which its visitors are led as well.
//! 2. Few ask, and seldom. What was read is believed for a minute, and those who ask at the same time share one reading.
//! 3. Crawlers need not read more than 500 KiB: of more links the latest are listed.

use std::{sync::Arc, time::Duration};

use app::list_links::pieces;
use codes::LinkId;
use hyper::{StatusCode, body::Bytes};
use links::{DomainId, Filter, OrderBy, OrderField};
use moka::future::Cache;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use store::{PER_PAGE_MAX, StoreError};
use web::{Answer, TEXT, answer};

use crate::{Redirector, fallback_page::unavailable};

/// How long what was read is believed.
const BELIEVED: Duration = Duration::from_secs(60);
/// Domains whose text is kept.
const DOMAINS: u64 = 100;
/// The longest text, in bytes.
const TEXT_MAX: usize = 500 * 1024;
const HEAD: &str = "# https://www.rfc-editor.org/rfc/rfc9309\n\nUser-agent: *\n";
const TAIL: &str = "Disallow: /\n";
/// Letters that mean something in a rule, or are none of a path, are escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The text of each domain.
pub struct Robots {
    texts: Cache<DomainId, Bytes>,
}

impl Robots {
    /// Knows no text yet.
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

/// Tells crawlers which links of a host they may follow.
pub async fn show(redirector: &Arc<Redirector>, host: Option<&str>) -> Answer {
    let place = redirector.directory.place(host);
    if place.domain.settings.disabled {
        return answer(StatusCode::OK, TEXT, format!("{HEAD}{TAIL}"));
    }
    let (domain, reader) = (place.domain.id, Arc::clone(redirector));
    // On the daemon's own runtime: whoever waits for the same reading must not depend on this connection.
    let read = redirector.runtime.spawn(async move {
        reader.robots.texts.try_get_with(domain, read(&reader, domain)).await.map_err(|error| {
            tracing::warn!(error = &*error as &dyn std::error::Error, "list links for crawlers");
        })
    });
    match read.await {
        Ok(Ok(text)) => answer(StatusCode::OK, TEXT, text),
        // A crawler that is told this looks at nothing until it is told more.
        Ok(Err(())) | Err(_) => unavailable(redirector),
    }
}

async fn read(redirector: &Redirector, domain: DomainId) -> Result<Bytes, StoreError> {
    let mut text = HEAD.to_owned();
    let now = redirector.directory.now();
    let both = [domain, DomainId::DEFAULT];
    for domain in &both[usize::from(domain.is_default())..] {
        let filter = Filter {
            domain: Some(*domain),
            crawlable: true,
            order: OrderBy { field: OrderField::DateCreated, descending: true },
            per_page: Some(PER_PAGE_MAX),
            ..Filter::default()
        };
        let outline = redirector.store.outline(&filter, None).await?;
        'links: for piece in pieces(&outline.entries) {
            let ids: Vec<LinkId> = piece.iter().map(|entry| entry.id).collect();
            let records = redirector.store.records(&ids).await?;
            let live = records.iter().map(|record| &record.link).filter(|link| link.is_live(now));
            for name in live.filter_map(|link| redirector.lookup.name_of(link)) {
                // To its end: a rule means every path that begins with it.
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
