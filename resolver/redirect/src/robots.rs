//! `GET|HEAD /robots.txt` (RFC 9309): allows crawlers the links marked `crawlable`, and disallows
//! everything else. On a domain that is marked itself, all links are allowed.
//!
//! 1. A domain lists its own links and those of the default domain, which redirect its visitors as
//!    well.
//! 2. A text is cached for a minute. The links of the default domain are read once in that time,
//!    for all domains. That a read failed is cached for a second.
//! 3. There is one read at a time, and requests of any host share it or wait for it. So a client
//!    that goes through all domains leaves the other connections for lists to the API.
//! 4. A rule is the beginning of what it allows: a link with any query, and also a longer name that
//!    begins with the same letters. A rule that ends in `$` would allow the bare link only, and
//!    links are followed with the queries of campaigns.
//! 5. Links below a path have it before their names, and nothing else of their host is disallowed.
//! 6. Crawlers need not read more than 500 KiB. If the links do not fit, the latest are listed.

use std::{sync::Arc, time::Duration};

use codes::LinkId;
use hyper::{StatusCode, body::Bytes};
use links::{DomainId, ESCAPED_IN_PATHS, Filter, OrderBy, OrderField, PER_PAGE_MAX, pieces};
use moka::{policy::EvictionPolicy, sync::Cache};
use percent_encoding::utf8_percent_encode;
use store::StoreError;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use web::{Answer, TEXT, answer};

use crate::{Redirector, fallback_page::unavailable};

/// The time for which a text is cached.
const CACHED_FOR: Duration = Duration::from_secs(60);
/// The time after a failed read in which no other is tried.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// The longest time that a request waits for the reads of others.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The maximum memory for the texts of all domains, in bytes.
const MEMORY_MAX: u64 = 50 * 1024 * 1024;
/// The bytes that an entry of the cache takes beside its text.
const ENTRY_BYTES: usize = 256;
/// The maximum length of a text, in bytes.
const TEXT_MAX: usize = 500 * 1024;
const HEAD: &str = "# https://www.rfc-editor.org/rfc/rfc9309\n\nUser-agent: *\n";
const TAIL: &str = "Disallow: /\n";
/// What is no link, on a domain whose links are all allowed. Names of links may begin with
/// `cluster`, which is a single page.
const NO_LINKS: &str = "Disallow: /rest/\nDisallow: /manage\nDisallow: /cluster$\n";
/// The maximum length of the rules between the two, in bytes.
const RULES_MAX: usize = TEXT_MAX - HEAD.len() - TAIL.len();

#[derive(Clone)]
struct Text {
    /// The text; `None` if the links could not be read.
    bytes: Option<Bytes>,
    /// The time at which it is too old: a minute after the rules of the default domain were read.
    until: Instant,
    /// The memory that it takes, in bytes. A domain without links of its own shares the bytes of
    /// the default domain.
    weight: u32,
}

impl Text {
    /// Makes a text of which so many bytes are not shared.
    fn new(bytes: Option<Bytes>, until: Instant, own: usize) -> Self {
        Self { bytes, until, weight: u32::try_from(own + ENTRY_BYTES).unwrap_or(u32::MAX) }
    }
}

/// The cached text of each domain.
pub struct Robots {
    texts: Cache<DomainId, Text>,
    /// Locked while links are read.
    reading: Mutex<()>,
}

impl Default for Robots {
    fn default() -> Self {
        let texts = Cache::builder()
            .max_capacity(MEMORY_MAX)
            .weigher(|_, text: &Text| text.weight)
            .eviction_policy(EvictionPolicy::lru());
        Self { texts: texts.build(), reading: Mutex::default() }
    }
}

impl Robots {
    /// Returns the text of a domain. `read` reads the rules of a domain's own links. Returns `None`
    /// if they cannot be read.
    async fn text<R>(&self, domain: DomainId, read: impl Fn(DomainId) -> R) -> Option<Bytes>
    where
        R: Future<Output = Result<String, StoreError>>,
    {
        let _turn = timeout(WAIT_MAX, self.reading.lock()).await.ok()?;
        // Another request may have read it meanwhile.
        if let Some(text) = self.cached(domain) {
            return text.bytes;
        }
        let default_text = match self.cached(DomainId::DEFAULT) {
            Some(text) => text,
            None => {
                let until = Instant::now() + CACHED_FOR;
                let text = |rules: String| {
                    let bytes = whole(rules.as_bytes(), b"");
                    Text::new(Some(bytes.clone()), until, bytes.len())
                };
                self.keep(DomainId::DEFAULT, read(DomainId::DEFAULT).await.map(text))
            }
        };
        let shared = default_text.bytes?;
        if domain.is_default() {
            return Some(shared);
        }
        let text = |own: String| {
            if own.is_empty() {
                return Text::new(Some(shared), default_text.until, 0);
            }
            let bytes = whole(own.as_bytes(), rules_of(&shared));
            Text::new(Some(bytes.clone()), default_text.until, bytes.len())
        };
        self.keep(domain, read(domain).await.map(text)).bytes
    }

    /// Caches a text, or that it could not be read.
    fn keep(&self, domain: DomainId, text: Result<Text, StoreError>) -> Text {
        let text = text.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "list links for crawlers");
            Text::new(None, Instant::now() + FAILED_FOR, 0)
        });
        self.texts.insert(domain, text.clone());
        text
    }

    fn cached(&self, domain: DomainId) -> Option<Text> {
        self.texts.get(&domain).filter(|text| Instant::now() < text.until)
    }
}

/// Answers with a host's rules for crawlers.
pub async fn show(redirector: &Arc<Redirector>, host: Option<&str>) -> Answer {
    let (visited, _) = redirector.domain_cache.place(host);
    let base = redirector.domain_cache.base_path(host);
    let shown = |text: Bytes| answer(StatusCode::OK, TEXT, below(base, text));
    if visited.settings.disabled {
        return shown(format!("{HEAD}{TAIL}").into());
    }
    if visited.settings.crawlable {
        return shown(format!("{HEAD}{NO_LINKS}").into());
    }
    let domain = visited.id;
    if let Some(text) = redirector.robots.cached(domain).and_then(|text| text.bytes) {
        return shown(text);
    }
    let reader = Arc::clone(redirector);
    // On the daemon's own runtime, because requests of other connections may share this read.
    let read = redirector.runtime.spawn(async move {
        let redirector: &Redirector = &reader;
        redirector.robots.text(domain, |domain| rules(redirector, domain)).await
    });
    match read.await {
        Ok(Some(text)) => shown(text),
        // A crawler that receives this status visits nothing until it receives another.
        Ok(None) | Err(_) => unavailable(redirector),
    }
}

/// Puts the path below which a host's links are before the paths of rules. Those of the default
/// domain's links are also for other hosts, which have no such path.
fn below(base: &str, text: Bytes) -> Bytes {
    if base.is_empty() {
        return text;
    }
    String::from_utf8_lossy(&text).replace(": /", &format!(": {base}/")).into()
}

/// Reads the rules of a domain's own links, at most [`RULES_MAX`] bytes of them.
async fn rules(redirector: &Redirector, domain: DomainId) -> Result<String, StoreError> {
    let now = redirector.domain_cache.now();
    let filter = Filter {
        domain: Some(domain),
        crawlable: true,
        order: OrderBy { field: OrderField::DateCreated, descending: true },
        per_page: Some(PER_PAGE_MAX),
        ..Filter::default()
    };
    let outline = redirector.catalog.outline(&filter, None).await?;
    let mut rules = String::new();
    for piece in pieces(&redirector.catalog.outlines_of(&outline.ids).await?) {
        let ids: Vec<LinkId> = piece.iter().map(|entry| entry.id).collect();
        let records = redirector.catalog.records(&ids).await?;
        let live = records.iter().map(|record| &record.link).filter(|link| link.is_live(now));
        for name in live.filter_map(|link| redirector.lookup.name_of(link)) {
            // Special characters of a rule are escaped too. As in Shlink without `$`, which would
            // exclude the link with a query (RFC 9309, section 2.2.2).
            let rule = format!("Allow: /{}\n", utf8_percent_encode(&name, ESCAPED_IN_PATHS));
            if rules.len() + rule.len() > RULES_MAX {
                return Ok(rules);
            }
            rules.push_str(&rule);
        }
    }
    Ok(rules)
}

/// Builds a text from a domain's own rules, and from as many of the default domain's as fit.
fn whole(own: &[u8], of_default: &[u8]) -> Bytes {
    let room = RULES_MAX.saturating_sub(own.len());
    let fitting = if of_default.len() <= room {
        of_default
    } else {
        let line_end = of_default[..room].iter().rposition(|byte| *byte == b'\n');
        &of_default[..line_end.map_or(0, |at| at + 1)]
    };
    [HEAD.as_bytes(), own, fitting, TAIL.as_bytes()].concat().into()
}

/// Returns the rules in a text that [`whole`] has built.
fn rules_of(text: &[u8]) -> &[u8] {
    &text[HEAD.len()..text.len() - TAIL.len()]
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use tokio::time::{advance, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_default_domains_links_are_read_once_a_minute_for_all_domains() {
        let (robots, reads) = (Robots::default(), RefCell::new(Vec::new()));
        let [one, other] = [1, 2].map(DomainId::from_stored);
        let read = |domain: DomainId| {
            reads.borrow_mut().push(domain);
            async move {
                sleep(Duration::from_millis(10)).await;
                let rules = if domain.is_default() { "Allow: /all\n" } else { "Allow: /own\n" };
                Ok::<_, StoreError>(if domain == other { String::new() } else { rules.to_owned() })
            }
        };
        let texts = tokio::join!(
            robots.text(one, &read),
            robots.text(other, &read),
            robots.text(DomainId::DEFAULT, &read),
            robots.text(one, &read),
        );
        let of_one = format!("{HEAD}Allow: /own\nAllow: /all\n{TAIL}");
        let of_all = format!("{HEAD}Allow: /all\n{TAIL}");
        assert_eq!(texts.0.unwrap(), of_one);
        assert_eq!(texts.1.unwrap(), of_all);
        assert_eq!(texts.2.unwrap(), of_all);
        assert_eq!(texts.3.unwrap(), of_one);
        assert_eq!(*reads.borrow(), [DomainId::DEFAULT, one, other]);
        advance(CACHED_FOR).await;
        assert!(robots.cached(one).is_none() && robots.cached(DomainId::DEFAULT).is_none());
        assert_eq!(robots.text(one, &read).await.unwrap(), of_one);
        assert_eq!(reads.borrow().len(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_read_answers_all_domains_for_a_second() {
        let (robots, reads) = (Robots::default(), Cell::new(0));
        let read = |_: DomainId| {
            reads.set(reads.get() + 1);
            async { Err::<String, _>(StoreError::TimedOut) }
        };
        for domain in [1, 2, 3].map(DomainId::from_stored) {
            assert_eq!(robots.text(domain, &read).await, None);
        }
        assert_eq!(reads.get(), 1);
        advance(FAILED_FOR).await;
        assert_eq!(robots.text(DomainId::DEFAULT, &read).await, None);
        assert_eq!(reads.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_domain_whose_links_cannot_be_read_has_no_text_and_all_others_have_theirs() {
        let robots = Robots::default();
        let [broken, other] = [1, 2].map(DomainId::from_stored);
        let read = |domain: DomainId| async move {
            if domain == broken { Err(StoreError::TimedOut) } else { Ok(String::new()) }
        };
        assert_eq!(robots.text(broken, &read).await, None);
        assert!(robots.text(other, &read).await.is_some() && robots.text(broken, &read).await.is_none());
    }

    #[test]
    fn a_text_ends_with_the_last_rule_that_fits() {
        let line = b"Allow: /abc\n";
        let full = line.repeat(RULES_MAX / line.len());
        assert_eq!(rules_of(&whole(&full, line)), full, "no room for another rule");
        let text = whole(line, &full);
        assert_eq!(rules_of(&text), full, "one of its own, and all but one of the others");
        assert!(text.len() <= TEXT_MAX);
    }
}
