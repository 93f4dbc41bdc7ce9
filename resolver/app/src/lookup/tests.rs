//! Tests of what a lookup answers when it has an outdated link, and cannot read the present one.

use codes::CodeKey;
use daemon::Recorder;
use jiff::Timestamp;
use links::{Draft, api_key::ApiKeyId};
use rusqlite::Connection;
use store::sqlite::SqliteStore;
use supply::Clock;

use super::*;

/// Starts a lookup over a database without a schema: every read fails.
fn lookup() -> Lookup {
    let connection = Arc::new(Mutex::new(Connection::open_in_memory().unwrap()));
    let (vitals, _) = Vitals::new();
    let sizes = LookupSizes { cache_bytes: 1 << 20, replica_lag: Duration::from_secs(2) };
    let mint = Arc::new(Mint::new(&CodeKey::parse(&"5a".repeat(32)).unwrap(), []));
    let ceilings = Arc::new(Ceilings::new(Clock::start()));
    let links = Arc::new(SqliteStore::here(&connection));
    Lookup::start(&vitals, sizes, mint, ceilings, links, Metrics::new(&Recorder::new()))
}

fn link() -> Arc<Link> {
    let draft = Draft {
        long_url: LongUrl::from_stored("https://example.com/"),
        title: None,
        crawlable: false,
        forward_query: true,
        created_by: ApiKeyId(1),
        details: None,
    };
    Arc::new(Link::stored(LinkId::from_stored(1), draft, Timestamp::UNIX_EPOCH))
}

#[tokio::test]
async fn a_full_queue_is_reported_to_its_callers_and_does_not_count_as_a_store_that_is_away() {
    let (lookup, link) = (lookup(), link());
    let read = async || {
        let stale = Cached::new(&link, lookup.news.freshness.now(), true);
        lookup.read(link.id, Name::Id(link.id), Some(stale)).await
    };
    let all = lookup.misses.try_reserve_many(WAITING_MAX).unwrap();
    assert_eq!(read().await, Err(LookupError::Overloaded));
    assert!(!lookup.news.store_is_away(), "the store was not asked");

    drop(all);
    assert_eq!(read().await, Ok(Some(Arc::clone(&link))), "the store has failed");
    assert!(lookup.news.store_is_away());
}
