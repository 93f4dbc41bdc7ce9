//! Tests of what a lookup answers when it has an outdated link, and cannot read the present one.

use codes::CodeKey;
use daemon::Recorder;
use jiff::Timestamp;
use links::{Details, Draft, api_key::ApiKeyId};
use rusqlite::Connection;
use store::sqlite::SqliteStore;

use super::*;
use crate::freshness::AWAY;

const HOUR: Duration = Duration::from_secs(3_600);

pub(super) fn config(replica_lag: Duration, serve_stale_for: Duration) -> LookupConfig {
    LookupConfig {
        cache_bytes: 1 << 20,
        warm_links: 0,
        replica_lag,
        serve_stale_for,
        rules: SafetyRules::default(),
    }
}

/// Returns a database without a schema: every read fails.
pub(super) fn broken() -> Arc<SqliteStore> {
    Arc::new(SqliteStore::here(&Arc::new(Mutex::new(Connection::open_in_memory().unwrap()))))
}

pub(super) fn mint() -> Mint {
    Mint::new(&CodeKey::parse(&"5a".repeat(32)).unwrap(), [])
}

/// Starts a lookup over a database that fails.
fn lookup(recorder: &Recorder) -> Lookup {
    let supervisor = TaskSupervisor::default();
    let mint = Arc::new(mint());
    let config = config(Duration::from_secs(2), HOUR);
    Lookup::start(&supervisor, config, mint, broken(), Metrics::new(recorder))
}

/// Returns a link at this version.
pub(super) fn link(id: i64, version: u64) -> Arc<Link> {
    let draft = Draft {
        long_url: LongUrl::from_stored(format!("https://example.com/{id}/{version}")),
        title: None,
        crawlable: false,
        forward_query: true,
        created_by: ApiKeyId(1),
        details: Some(Box::new(Details { version, ..Details::default() })),
    };
    Arc::new(Link::stored(LinkId::from_stored(id), draft, Timestamp::UNIX_EPOCH))
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_hides_a_link_that_is_known_only_if_the_store_answers() {
    let (lookup, link) = (lookup(&Recorder::new()), link(1, 0));
    let (stale, name) = (outdated(&lookup, &link).await, Name::Id(link.id));
    let read = async || lookup.read(link.id, name, Some(Arc::clone(&stale))).await;
    let all = lookup.misses[0].try_reserve_many(WAITING_MAX).unwrap();
    assert_eq!(read().await, Err(LookupError::Overloaded));
    assert!(!lookup.invalidation.store_is_away(0), "the store was not asked");

    drop(all);
    assert_eq!(read().await, Ok(Some(Arc::clone(&link))), "the store has failed");
    assert!(lookup.invalidation.store_is_away(0));

    tokio::time::advance(Duration::from_secs(2)).await;
    let _all = lookup.misses[0].try_reserve_many(WAITING_MAX).unwrap();
    assert!(!lookup.invalidation.store_is_away(0));
    assert_eq!(read().await, Ok(Some(Arc::clone(&link))), "the last read has failed");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_away_hides_no_change_on_another() {
    let lookup = lookup(&Recorder::new());
    let stale = outdated(&lookup, &link(1, 0)).await;
    let nodes = InvalidationState::new(config(Duration::ZERO, Duration::ZERO), 2);
    nodes.note_store_away(0);
    assert!(nodes.is_not_read_again(&stale, 0));
    assert!(!nodes.is_not_read_again(&stale, 1));
}

/// Caches a link that has to be read again.
async fn outdated(lookup: &Lookup, link: &Arc<Link>) -> Arc<Cached> {
    let cached = Cached::new(link, lookup.invalidation.freshness.now());
    lookup.cache.insert(Name::Id(link.id), Arc::clone(&cached));
    tokio::time::advance(AWAY).await;
    // The listener of a store that is not shared has connected by now.
    lookup.invalidation.freshness.mark_not_told();
    cached
}

#[tokio::test(start_paused = true)]
async fn a_link_that_left_the_cache_or_is_too_old_is_not_served_while_the_store_is_away() {
    let (lookup, link) = (lookup(&Recorder::new()), link(1, 0));
    let (stale, name) = (outdated(&lookup, &link).await, Name::Id(link.id));
    let read = async || lookup.read(link.id, name, Some(Arc::clone(&stale))).await;
    tokio::time::advance(HOUR - 2 * AWAY).await;
    assert_eq!(read().await, Ok(Some(Arc::clone(&link))));
    tokio::time::advance(2 * AWAY).await;
    assert_eq!(read().await, Err(LookupError::NoStore), "it was last confirmed an hour ago");

    let stale = outdated(&lookup, &link).await;
    lookup.changed(link.id);
    assert_eq!(lookup.read(link.id, name, Some(stale)).await, Err(LookupError::NoStore), "it was changed");
}

#[tokio::test(start_paused = true)]
async fn no_link_is_read_for_a_caller_that_has_given_up() {
    let recorder = Recorder::new();
    let lookup = lookup(&recorder);
    for id in 1..=3 {
        let waiter = Waiter { name: None, found: oneshot::channel().0 };
        lookup.misses[0].try_send((LinkId::from_stored(id), waiter)).unwrap();
    }
    let id = LinkId::from_stored(4);
    assert_eq!(lookup.ask(id, None, DEADLINE).await, Err(LookupError::NoStore));
    let asked = recorder.render();
    assert!(asked.contains("resolver_links_asked_total 1\n"), "{asked}");
}
