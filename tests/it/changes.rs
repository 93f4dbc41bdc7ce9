//! Changes made elsewhere to links that a resolver has in its cache.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use harness::{Postgres, Resolver, Scratch, migrate, secret, wait};
use tokio_postgres::Client;

const SOON: Duration = Duration::from_secs(30);
/// How soon a change shows with a notification and without one, with a margin for a busy machine.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
const UNTOLD_WITHIN: Duration = Duration::from_secs(10);

const CHANGE: &str = "UPDATE link SET long_url = $1 WHERE id = $2";
const TELL: &str = "SELECT pg_notify('shortmint_links', $1::bigint::text)";

struct Ground {
    postgres: Postgres,
    resolver: Resolver,
    sql: Client,
    _scratch: Scratch,
}

async fn start() -> Ground {
    let scratch = Scratch::new().unwrap();
    let postgres = Postgres::builder().scratch(&scratch).start().await.unwrap();
    migrate(&scratch, &postgres.url()).await.unwrap().success().unwrap();
    let builder = Resolver::builder(&scratch, "resolver-0", &secret::random_hex().unwrap()).unwrap();
    let resolver = builder.database(&postgres.url()).start().await.unwrap();
    let sql = postgres.client().await.unwrap();
    Ground { postgres, resolver, sql, _scratch: scratch }
}

impl Ground {
    async fn create(&self, url: &str) -> (String, i64) {
        let code = self.resolver.api.create(url).await.unwrap().code;
        let found = self.sql.query_one("SELECT id FROM link WHERE long_url = $1", &[&url]).await.unwrap();
        (code, found.get(0))
    }

    async fn leads_to(&self, code: &str, url: &str) -> bool {
        self.resolver.api.follow(code).await.unwrap() == (302, Some(url.to_owned()))
    }

    async fn is_listening(&self, but_not: Option<i32>) -> Option<i32> {
        let asked = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Client' \
                     AND application_name = 'shortmint-resolver' AND query IN ('', 'LISTEN shortmint_links')";
        let pids = self.sql.query(asked, &[]).await.unwrap();
        pids.iter().map(|row| row.get(0)).find(|pid| Some(*pid) != but_not)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_shows_at_once_and_stays_though_the_code_is_asked_for_all_the_time() {
    let ground = start().await;
    let (code, id) = ground.create("https://example.com/before").await;
    wait::until_some(SOON, "the resolver listens", async || ground.is_listening(None).await).await.unwrap();
    let hammering = Arc::new(AtomicBool::new(true));
    let hammers = (0..4).map(|_| {
        let (api, code, hammering) = (ground.resolver.api.clone(), code.clone(), Arc::clone(&hammering));
        tokio::spawn(async move {
            while hammering.load(Ordering::Relaxed) {
                assert_eq!(api.follow(&code).await.unwrap().0, 302);
            }
        })
    });
    let hammers: Vec<_> = hammers.collect();
    for round in 0..20 {
        let url = format!("https://example.com/after/{round}");
        ground.sql.execute(CHANGE, &[&url, &id]).await.unwrap();
        ground.sql.execute(TELL, &[&id]).await.unwrap();
        let shows = wait::until(TOLD_WITHIN, "the change shows", async || ground.leads_to(&code, &url).await);
        shows.await.unwrap();
        for _ in 0..50 {
            assert!(ground.leads_to(&code, &url).await, "an old answer came back");
        }
    }
    ground.sql.execute("DELETE FROM link WHERE id = $1", &[&id]).await.unwrap();
    hammering.store(false, Ordering::Relaxed);
    for hammer in hammers {
        hammer.await.unwrap();
    }
    ground.sql.execute(TELL, &[&id]).await.unwrap();
    let gone = async || ground.resolver.api.follow(&code).await.unwrap().0 == 404;
    wait::until(TOLD_WITHIN, "a link that is gone shows as gone", gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_tells_of_changes_links_are_read_again_and_what_was_missed_shows_afterwards() {
    let ground = start().await;
    let (code, id) = ground.create("https://example.com/first").await;
    let listener = wait::until_some(SOON, "the resolver listens", async || ground.is_listening(None).await);
    let listener = listener.await.unwrap();
    assert!(ground.leads_to(&code, "https://example.com/first").await);

    // The resolver's LISTEN connection is terminated as soon as it exists.
    let cutting = Arc::new(AtomicBool::new(true));
    let cutter = {
        let (cutting, sql) = (Arc::clone(&cutting), ground.postgres.client().await.unwrap());
        tokio::spawn(async move {
            let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE application_name = 'shortmint-resolver' AND query IN ('', 'LISTEN shortmint_links')";
            while cutting.load(Ordering::Relaxed) {
                sql.query(cut, &[]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    };
    for round in 0..2 {
        let url = format!("https://example.com/untold/{round}");
        ground.sql.execute(CHANGE, &[&url, &id]).await.unwrap();
        let shows =
            wait::until(UNTOLD_WITHIN, "it is read again", async || ground.leads_to(&code, &url).await);
        shows.await.unwrap();
    }
    let url = "https://example.com/missed";
    ground.sql.execute(CHANGE, &[&url, &id]).await.unwrap();
    cutting.store(false, Ordering::Relaxed);
    cutter.await.unwrap();
    let again = async || ground.is_listening(Some(listener)).await;
    wait::until_some(SOON, "the resolver listens again", again).await.unwrap();
    let shows = async || ground.leads_to(&code, url).await;
    wait::until(UNTOLD_WITHIN, "what was missed shows", shows).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_cached_links_redirect_though_nobody_tells_of_changes() {
    let mut ground = start().await;
    let (code, _) = ground.create("https://example.com/kept").await;
    wait::until_some(SOON, "the resolver listens", async || ground.is_listening(None).await).await.unwrap();
    assert!(ground.leads_to(&code, "https://example.com/kept").await);
    ground.postgres.stop_fast().await.unwrap();
    for _ in 0..8 {
        assert!(ground.leads_to(&code, "https://example.com/kept").await);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
