//! Resolvers that keep the rows of visits in ClickHouse, which goes away and comes back.

use std::path::Path;

use harness::{Clickhouse, Postgres, Resolver, Scratch, binaries, launch::Launch, resolver, secret, wait};
use reqwest::Method;

use crate::pages::sign_in;
use crate::visits::{FIREFOX, SOON, client, create, must_count};

/// The servers, and what a resolver needs to know of them.
struct Platform {
    scratch: Scratch,
    postgres: Postgres,
    clickhouse: Clickhouse,
    key: String,
}

impl Platform {
    async fn start() -> Self {
        let scratch = Scratch::new().unwrap();
        let postgres = Postgres::builder().scratch(&scratch).start().await.unwrap();
        resolver::migrate(&scratch, &postgres.url()).await.unwrap().success().unwrap();
        let clickhouse = Clickhouse::start(&scratch).await.unwrap();
        Self { scratch, postgres, clickhouse, key: secret::random_hex().unwrap() }
    }

    async fn resolver(&self, spool: &Path) -> Resolver {
        let builder = Resolver::builder(&self.scratch, "apart", &self.key).unwrap();
        let builder = builder.database(&self.postgres.url());
        let store = self.clickhouse.url("links");
        let spool = spool.to_str().unwrap();
        let flags = ["--tune", "visits-flush=turn", "--visits-spool", spool, "--visits-store", &store];
        builder.args(flags).start().await.unwrap()
    }

    /// Returns how many rows the tables have, by link and by time.
    async fn rows(&self) -> String {
        let count = |table: &str| format!("(SELECT count() FROM links.{table})");
        let query = format!("SELECT {}, {}", count("visit"), count("visit_by_time"));
        self.clickhouse.query(&query).await.unwrap_or_default()
    }

    /// Waits until both tables have so many rows.
    async fn must_have(&self, rows: u64) {
        let expected = format!("{rows}\t{rows}");
        wait::until(SOON, "all rows are stored", async || self.rows().await == expected).await.unwrap();
    }
}

/// Returns whether the page of the cluster says that the database and the store of visits answer.
async fn all_answer(resolver: &Resolver, cookie: &str) -> bool {
    let page = client().get(format!("http://{}/cluster", resolver.addr())).header("Cookie", cookie);
    let page = page.send().await.unwrap().text().await.unwrap();
    let (answer, silent) = (page.matches("Reachable").count(), page.matches("Not reachable").count());
    assert_eq!(answer + silent, 2, "{page}");
    silent == 0
}

async fn visits(resolver: &Resolver, code: &str, count: usize) {
    let client = client();
    for number in 0..count {
        let answer = client.get(format!("http://{}/{code}", resolver.addr())).header("User-Agent", FIREFOX);
        let answer = answer.send().await.unwrap();
        assert!(answer.status().is_redirection(), "visit {number}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_wait_while_clickhouse_is_away_and_count_once_when_it_is_back() {
    let mut platform = Platform::start().await;
    platform.clickhouse.process_mut().kill_now().unwrap();
    let spool = platform.scratch.folder("spool").unwrap();
    let mut resolver = platform.resolver(&spool).await;
    let code = create(&resolver, &platform.key).await;
    visits(&resolver, &code, 40).await;
    let is_waiting =
        async || resolver.metric("resolver_visit_rows_waiting").await.is_some_and(|rows| rows > 0.0);
    wait::until(SOON, "a batch waits for its rows", is_waiting).await.unwrap();
    let is_seen = async || {
        let oldest = resolver.metric("resolver_visit_rows_oldest_waiting_seconds").await;
        let age = "resolver_last_success_age_seconds";
        let age = resolver.metric_where(age, "server=\"clickhouse\"").await;
        oldest > Some(2.0) && age > Some(2.0)
    };
    wait::until(SOON, "its age and that of the outage are seen", is_seen).await.unwrap();
    let errors =
        resolver.metric_where("resolver_database_errors_total", "server=\"clickhouse\",sqlstate=\"lost\"");
    assert!(errors.await > Some(0.0));
    let url = format!("http://{}/rest/v3/short-urls/{code}/visits?itemsPerPage=1", resolver.addr());
    let answer = client().get(url).header("X-Api-Key", &platform.key).send().await.unwrap();
    assert_eq!(answer.status(), 503, "single visits cannot be listed");
    let cookie = sign_in(&format!("http://{}", resolver.addr()), &platform.key).await;
    assert!(!all_answer(&resolver, &cookie).await, "operators see it");

    // A batch is counted, its rows are not stored, and the next one waits in the spool.
    resolver.process.kill_now().unwrap();
    resolver.restart().await.unwrap();
    visits(&resolver, &code, 7).await;
    platform.clickhouse.restart().await.unwrap();
    platform.must_have(47).await;
    assert!(all_answer(&resolver, &cookie).await);
    must_count(&resolver, &platform.key, &code, 47).await;
    assert_eq!(resolver.metric("resolver_visit_rows_waiting").await, Some(0.0));
    assert_eq!(resolver.metric("resolver_visit_rows_oldest_waiting_seconds").await, Some(0.0));

    let url = format!("http://{}/rest/v3/short-urls/{code}/visits", resolver.addr());
    let deletion = client().request(Method::DELETE, url).header("X-Api-Key", &platform.key);
    let deleted: serde_json::Value = deletion.send().await.unwrap().json().await.unwrap();
    assert_eq!(deleted["deletedVisits"], 47);
    visits(&resolver, &code, 3).await;
    platform.must_have(3).await;
    must_count(&resolver, &platform.key, &code, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_creates_the_tables_and_says_what_is_wrong() {
    let platform = Platform::start().await;
    let run = async |database: &str, store: &str| {
        let args = ["migrate", "--database", database, "--visits-store", store];
        let launch = Launch::new(&platform.scratch, "migrate", binaries::resolver().await.unwrap());
        launch.args(args).run(SOON).await.unwrap()
    };
    let (postgres, store) = (platform.postgres.url(), platform.clickhouse.url("made"));
    for _ in 0..2 {
        run(&postgres, &store).await.success().unwrap();
    }
    let tables = "SELECT count() FROM system.tables WHERE database = 'made'";
    assert_eq!(platform.clickhouse.query(tables).await.unwrap(), "3");
    let sqlite = run("sqlite:x.db", &store).await;
    assert_eq!(sqlite.code(), Some(64));
    assert!(sqlite.stderr.contains("--visits-store"), "{}", sqlite.stderr);
    assert!(!sqlite.stderr.contains("p%40ss"), "{}", sqlite.stderr);
    let wrong = run(&postgres, &store.replace("p%40ss", "wrong")).await;
    assert_eq!(wrong.code(), Some(69));
}
