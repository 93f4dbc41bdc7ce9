//! A standby in the list of hosts, while the primary is away (fault 34). It redirects only what it
//! can prove to be current, and nothing that was acknowledged is undone by its older rows.

use std::time::Duration;

use harness::{Api, Cluster, Postgres, Resolver, wait};
use reqwest::Method;
use serde_json::json;

use crate::{
    replica::replay,
    rest_calls::{call, done, leads_to},
};

const SOON: Duration = Duration::from_secs(30);
/// How long the changed links are asked for, beyond the pauses after failed reads.
const OUTAGE: Duration = Duration::from_secs(4);
const OLD: &str = "https://example.com/old";
const NEW: &str = "https://example.com/new";

/// A primary with a standby, and resolvers that know both.
struct Pair {
    cluster: Cluster,
    standby: Postgres,
    url: String,
}

impl Pair {
    async fn start() -> Self {
        let cluster = Cluster::builder()
            .on_one_postgres()
            .etcd(1)
            .issuers(1)
            .resolvers(0)
            .alone()
            .start()
            .await
            .unwrap();
        cluster.migrate().await.unwrap().success().unwrap();
        let standby = cluster.postgres.standby(&cluster.scratch).await.unwrap();
        let (primary, other) = (cluster.postgres.addr().to_string(), standby.addr());
        // The standby is first in the list: it accepts connections sooner than the primary does.
        let url = cluster.database_url().replace(&primary, &format!("{other},{primary}"));
        Self { cluster, standby, url }
    }

    async fn resolver(&self, holder: &str) -> Resolver {
        self.cluster.resolver(holder).unwrap().database(&self.url).start().await.unwrap()
    }

    /// Waits until the standby has replayed all that the primary has written.
    async fn catch_up(&self) {
        let (primary, standby) =
            (self.cluster.postgres.client().await.unwrap(), self.standby.client().await.unwrap());
        wait::until(SOON, "the standby has caught up", async || {
            let at = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
            let at: i64 = primary.query_one(at, &[]).await.unwrap().get(0);
            let replayed = "SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint";
            standby.query_one(replayed, &[]).await.unwrap().get::<_, i64>(0) >= at
        })
        .await
        .unwrap();
    }
}

async fn create(api: &Api, slug: Option<&str>) -> String {
    api.create_with(&json!({ "longUrl": OLD, "customSlug": slug })).await.unwrap().code
}

/// Blocks the first link, edits the second and deletes the third.
async fn change(api: &Api, links: &[String]) {
    let [blocked, edited, deleted] = links else { panic!("three links are changed") };
    let reason = json!({ "reason": "phishing" });
    done(api, Method::POST, &format!("short-urls/{blocked}/block"), Some(reason)).await;
    done(api, Method::PATCH, &format!("short-urls/{edited}"), Some(json!({ "longUrl": NEW }))).await;
    assert_eq!(call(api, Method::DELETE, &format!("short-urls/{deleted}"), None).await.status, 204);
}

/// Asserts that none of three changes is undone, nor any link denied.
async fn expect_changed(resolver: &Resolver, links: &[String]) {
    for link in links {
        let (status, target) = resolver.api.follow(link).await.unwrap();
        assert_ne!(target.as_deref(), Some(OLD), "{link}: {links:?}");
        assert!([302, 404, 410, 503].contains(&status), "{link}: {status}");
        let is_there = link == &links[0] || link == &links[1];
        assert!(!is_there || status != 404, "{link} exists");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_primary_is_away_a_standby_redirects_what_it_has() {
    let mut pair = Pair::start().await;
    let resolver = pair.resolver("resolver-0").await;
    let old = create(&resolver.api, None).await;
    let slug = create(&resolver.api, Some("spring/sale")).await;
    // Answered after a poll of the primary, which samples a position behind both links.
    let rule = json!({ "pattern": "other.example", "allowed": true });
    done(&resolver.api, Method::PUT, "targets", Some(rule)).await;
    // It stops once the standby has received the end of its log.
    pair.cluster.postgres.stop_fast().await.unwrap();
    let follow = async |code: &str| resolver.api.follow(code).await.unwrap();
    for link in [&old, &slug] {
        let redirects = wait::until(SOON, "what the standby has", async || follow(link).await.0 == 302);
        redirects.await.unwrap();
    }
    let refused = resolver.api.try_create("https://example.com/never").await.unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");

    pair.cluster.postgres.restart().await.unwrap();
    let creates = async || resolver.api.try_create(NEW).await.is_ok_and(|answer| answer.status == 200);
    wait::until(SOON, "the primary takes links again", creates).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lags_undoes_no_takedown_edit_or_deletion_while_the_primary_is_away() {
    let mut pair = Pair::start().await;
    let (warm, cold) = (pair.resolver("warm").await, pair.resolver("cold").await);
    let slugs = ["a/blocked", "an/edited", "a/deleted"].map(Some);
    let mut links = Vec::new();
    for slug in [None, None, None].into_iter().chain(slugs) {
        links.push(create(&warm.api, slug).await);
    }
    let (kept, rare) = (create(&warm.api, None).await, create(&warm.api, None).await);
    for link in links.iter().chain([&kept]) {
        assert_eq!(warm.api.follow(link).await.unwrap(), leads_to(OLD));
    }
    assert_eq!(cold.api.follow(&kept).await.unwrap(), leads_to(OLD));
    pair.catch_up().await;
    replay(&pair.standby, "pg_wal_replay_pause").await;
    let (minted, named) = links.split_at(3);
    change(&warm.api, minted).await;
    change(&cold.api, named).await;
    // A change whose notification is lost with the primary is not known elsewhere. Notifications
    // come in the order of commits, and this was the last one.
    let is_told = async || warm.api.follow(&named[2]).await.unwrap().0 == 404;
    wait::until(SOON, "the last change is known", is_told).await.unwrap();
    pair.cluster.postgres.stop_immediately().await.unwrap();

    let late = pair.cluster.resolver("late").unwrap().database(&pair.url);
    let late = late.args(["--start-deadline", "1s"]);
    let over = tokio::time::Instant::now() + OUTAGE;
    wait::until(SOON, "the outage is over", async || {
        for resolver in [&warm, &cold] {
            expect_changed(resolver, minted).await;
            expect_changed(resolver, named).await;
            assert_eq!(resolver.api.follow(&kept).await.unwrap(), leads_to(OLD), "it is cached");
            let (status, _) = resolver.api.follow(&rare).await.unwrap();
            assert_eq!(status, 503, "nobody can say how old the standby's row is");
        }
        tokio::time::Instant::now() > over
    })
    .await
    .unwrap();
    assert!(late.start().await.is_err(), "a new process knows of no position, and does not serve");

    // The standby goes on to the end of what it received. That may lack the last of what the
    // primary had flushed, so it is not certain that it can prove its rows.
    replay(&pair.standby, "pg_wal_replay_resume").await;
    let over = tokio::time::Instant::now() + OUTAGE;
    wait::until(SOON, "the standby was asked again", async || {
        for resolver in [&warm, &cold] {
            expect_changed(resolver, minted).await;
            expect_changed(resolver, named).await;
            assert_ne!(resolver.api.follow(&rare).await.unwrap().0, 404, "it exists");
        }
        tokio::time::Instant::now() > over
    })
    .await
    .unwrap();
}
