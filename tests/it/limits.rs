//! Limits on a single client: unknown codes and connections.

use harness::{Connection, Resolver};

/// Codes of the default keyspace without a link: only a few links exist.
const UNKNOWN: [&str; 7] = ["abc121", "abc122", "abc123", "abc124", "abc125", "abc126", "abc127"];

async fn start(args: &[&str]) -> Resolver {
    Resolver::embedded().unwrap().args(args.iter().copied()).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_too_many_unknown_codes_is_told_to_wait_and_known_links_go_on() {
    let resolver = start(&["--limit", "unknown-codes-per-minute=5"]).await;
    let code = resolver.api.create("https://example.com/known").await.unwrap().code;
    // A link is in the cache only after its first request.
    assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302);
    // On a slow machine the budget may have regained a sixth request, but not a seventh.
    let mut statuses = Vec::new();
    for code in UNKNOWN {
        statuses.push(resolver.api.get(code).await.unwrap().status);
    }
    assert_eq!(statuses[..5], [404; 5]);
    assert_eq!(statuses[6], 429);
    let refused = resolver.api.get("abc128").await.unwrap();
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(refused.status == 429 && (1..=13).contains(&wait), "{refused:?}");
    assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302);
    assert_eq!(resolver.api.follow(&format!("{code}?x=1")).await.unwrap().0, 302);
    assert!(resolver.metric("resolver_unknown_codes_refused_total").await.unwrap() >= 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_has_so_many_connections_and_another_takes_the_place_of_its_idlest() {
    // One thread accepts connections in their order.
    let resolver = start(&["--limit", "connections-per-client=2,threads=1"]).await;
    let open = async || Connection::open(resolver.addr()).await.unwrap();
    let is_served = async |connection: &mut Connection| {
        connection.get("/robots.txt").await.is_ok_and(|answer| answer.status == 200)
    };
    let (mut used, mut silent) = (open().await, open().await);
    assert!(is_served(&mut used).await);
    let mut third = open().await;
    assert!(is_served(&mut third).await && is_served(&mut used).await);
    assert!(!is_served(&mut silent).await, "it was closed for the third");
}
