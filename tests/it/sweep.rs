//! Removal of unvisited links, and of old entries of the audit log, by one resolver at a time.
//! Visited links stay.

use std::time::Duration;

use harness::{Cluster, Resolver, wait};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn links_that_nobody_visits_are_removed_and_visited_ones_stay() {
    let builder = Resolver::embedded().unwrap().args(["--remove-unvisited-after", "20s", "--tell-gone"]);
    let resolver = builder.start().await.unwrap();
    let mut codes = Vec::new();
    for number in 0..300 {
        codes.push(resolver.api.create(&format!("https://example.com/{number}")).await.unwrap().code);
    }
    // One in ten links is followed once, eight seconds later, so it outlives the others. A visit is
    // recorded within a few seconds.
    let (visited, others): (Vec<_>, Vec<_>) =
        codes.iter().enumerate().partition(|(number, _)| number % 10 == 0);
    tokio::time::sleep(Duration::from_secs(8)).await;
    for (_, code) in &visited {
        assert_eq!(resolver.api.follow(code).await.unwrap().0, 302);
    }
    let all = others.len();
    wait::until(SOON, "the others are removed", async || {
        resolver.metric("resolver_links_removed_total").await.is_some_and(|removed| removed >= 270.0)
    })
    .await
    .unwrap();
    for (_, code) in others {
        assert_eq!(resolver.api.follow(code).await.unwrap().0, 410, "{code}");
    }
    assert_eq!(all, 270);
    for (_, code) in visited {
        assert_eq!(resolver.api.follow(code).await.unwrap().0, 302, "{code} was visited");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_resolvers_one_removes_and_another_goes_on_when_it_is_gone() {
    let mut cluster = Cluster::builder().start().await.unwrap();
    for name in ["sweeper-1", "sweeper-2"] {
        let builder = cluster.resolver(name).unwrap().args(["--remove-unvisited-after", "5s"]);
        cluster.resolvers.push(builder.start().await.unwrap());
    }
    for number in 0..1_000 {
        cluster.resolvers[0].api.create(&format!("https://example.com/{number}")).await.unwrap();
    }
    let client = cluster.postgres.client().await.unwrap();
    let left = async || {
        let count = "SELECT count(*) FROM link WHERE details->>'deletedAt' IS NULL";
        client.query_one(count, &[]).await.unwrap().get::<_, i64>(0)
    };
    wait::until(SOON, "all are removed", async || left().await == 0).await.unwrap();
    let noted = client
        .query_one("SELECT count(*), count(DISTINCT subject) FROM audit WHERE action = 'delete-link'", &[]);
    let noted = noted.await.unwrap();
    assert_eq!((noted.get::<_, i64>(0), noted.get::<_, i64>(1)), (1_000, 1_000), "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_audit_log_are_removed_after_some_days() {
    let mut cluster = Cluster::builder().start().await.unwrap();
    let client = cluster.postgres.client().await.unwrap();
    let hourly = "INSERT INTO audit (at, api_key, action, subject)
        SELECT now() - interval '1 hour' * number, 1, 'revoke-key', 'hourly' FROM generate_series(1, 3000) AS number";
    client.batch_execute(hourly).await.unwrap();
    for name in ["remover-1", "remover-2"] {
        let builder = cluster.resolver(name).unwrap().args(["--limit", "audit-days=30"]);
        cluster.resolvers.push(builder.start().await.unwrap());
    }
    let left = async || {
        let count = "SELECT count(*) FROM audit WHERE subject = 'hourly'";
        client.query_one(count, &[]).await.unwrap().get::<_, i64>(0)
    };
    wait::until(SOON, "old ones are removed", async || left().await < 30 * 24).await.unwrap();
    assert_eq!(left().await, 30 * 24 - 1);
}
