//! What one client may take from the others.

use harness::{Answer, Connection, Resolver};
use reqwest::RequestBuilder;

/// Codes of the default keyspace that no number was minted under: there are few links.
const UNKNOWN: [&str; 7] = ["abc121", "abc122", "abc123", "abc124", "abc125", "abc126", "abc127"];

async fn start(args: &[&str]) -> Resolver {
    Resolver::embedded().unwrap().args(args.iter().copied()).start().await.unwrap()
}

async fn statuses(resolver: &Resolver, request: impl Fn(RequestBuilder) -> RequestBuilder) -> Vec<u16> {
    let mut statuses = Vec::new();
    for code in UNKNOWN {
        let get = resolver.api.http().get(format!("{}/{code}", resolver.api.url()));
        statuses.push(Answer::to(request(get)).await.unwrap().status);
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_too_many_unknown_codes_is_told_to_wait_and_known_links_go_on() {
    let resolver = start(&["--unknown-codes-per-minute", "5"]).await;
    let code = resolver.api.create("https://example.com/known").await.unwrap().code;
    // Only what was asked for once is in the cache.
    assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302);
    // A sixth may have grown back on a slow machine, a seventh not.
    let statuses = statuses(&resolver, |request| request).await;
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
async fn clients_behind_a_trusted_proxy_have_budgets_of_their_own() {
    let resolver =
        start(&["--unknown-codes-per-minute", "5", "--trusted-proxies", "127.0.0.0/8,10.0.0.0/8"]).await;
    for client in ["192.0.2.1", "192.0.2.2, 10.1.1.1"] {
        let statuses = statuses(&resolver, |request| request.header("X-Forwarded-For", client)).await;
        assert_eq!((&statuses[..5], statuses[6]), (&[404; 5][..], 429), "{client}");
    }
    let forged =
        statuses(&resolver, |request| request.header("X-Forwarded-For", "198.51.100.9, 192.0.2.1")).await;
    // One may have grown back.
    assert_eq!(forged[1], 429, "what a client writes itself does not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_has_so_many_connections_and_gets_another_when_one_ends() {
    let resolver = start(&["--connections-per-client", "2"]).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::open(resolver.addr()).await.unwrap();
        assert_eq!(connection.get("/robots.txt").await.unwrap().status, 200);
        kept.push(connection);
    }
    let refused = async || match Connection::open(resolver.addr()).await {
        Ok(mut connection) => connection.get("/robots.txt").await.is_err(),
        Err(_) => true,
    };
    assert!(refused().await);
    kept.pop();
    let taken =
        harness::wait::until(std::time::Duration::from_secs(10), "a connection is taken", async || {
            !refused().await
        });
    taken.await.unwrap();
    assert!(resolver.metric("resolver_connections_refused_total").await.unwrap() >= 1.0);
}
