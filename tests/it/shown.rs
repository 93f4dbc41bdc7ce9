//! A create is acknowledged only when no resolver denies the link any more. So is a repeated create
//! that finds the link.

use std::time::Duration;

use harness::{Answer, Cluster, Direction, Flow, Resolver, wait};
use serde_json::{Value, json};

use crate::rest_calls::visit;

/// The delay with which the late resolver receives changes.
const LATE: Duration = Duration::from_millis(150);
const SOON: Duration = Duration::from_secs(10);

/// Starts a cluster with one resolver, and another resolver that receives everything from the
/// database late.
async fn start() -> (Cluster, Resolver, harness::Proxy) {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).start().await.unwrap();
    let proxy = harness::Proxy::start(cluster.postgres.addr()).await.unwrap();
    let url = cluster.postgres.url_via(&proxy);
    let late = cluster.resolver("late").unwrap().database(&url).start().await.unwrap();
    proxy.set(Direction::ToClient, Flow::Delay(LATE));
    (cluster, late, proxy)
}

/// Creates a link with an idempotency key.
async fn create(resolver: &Resolver, wish: &Value, key: &str) -> Answer {
    let post =
        resolver.api.post().header("X-Api-Key", resolver.api.key()).header("Idempotency-Key", key).json(wish);
    Answer::to(post).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_sent_again_is_answered_when_its_slug_is_known_everywhere() {
    let (cluster, late, _proxy) = start().await;
    let first = &cluster.resolvers[0];
    for number in 10..30 {
        // The slug has the form of the default keyspace's codes, and its number was never minted.
        let slug = format!("zzzz{number}");
        let wish = json!({ "longUrl": "https://example.com/", "customSlug": slug });
        let (one, two) = (create(first, &wish, &slug), async {
            let stored = "SELECT 1 FROM link WHERE details->>'slug' = $1";
            let sql = cluster.postgres.client().await.unwrap();
            let is_stored = async || sql.query_opt(stored, &[&slug]).await.unwrap().is_some();
            wait::until(SOON, "the slug is stored", is_stored).await.unwrap();
            let again = create(first, &wish, &slug).await;
            (again.status, late.api.follow(&slug).await.unwrap().0)
        });
        let (one, (again, followed)) = tokio::join!(one, two);
        assert_eq!((one.status, again), (200, 200));
        assert_eq!(followed, 302, "{slug} was acknowledged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domains_own_slug_leads_where_it_should_on_every_resolver_as_soon_as_it_is_acknowledged() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).start().await.unwrap();
    let [first, second] = &cluster.resolvers[..] else { panic!("there are two") };
    let wish = |slug: &str, domain: Option<&str>| {
        let url = format!("https://example.com/{}", domain.unwrap_or("default"));
        json!({ "longUrl": url, "customSlug": slug, "domain": domain })
    };
    // The domain exists before its slugs are picked.
    first.api.create_with(&wish("first", Some("one.example"))).await.unwrap();
    for number in 0..10 {
        let slug = format!("promo-{number}");
        first.api.create_with(&wish(&slug, None)).await.unwrap();
        let shared = visit(&second.api, "one.example", &slug).await;
        assert_eq!(shared.1.as_deref(), Some("https://example.com/default"));
        first.api.create_with(&wish(&slug, Some("one.example"))).await.unwrap();
        let own = visit(&second.api, "one.example", &slug).await;
        assert_eq!(own.1.as_deref(), Some("https://example.com/one.example"), "{slug}");
    }
}
