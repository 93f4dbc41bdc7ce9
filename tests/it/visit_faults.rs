//! Faults between a recorded visit and its row: answers of COMMIT that are lost, a stalled process
//! that comes back, deletions while visits pour in, and days without a partition.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use harness::{Flow, Postgres, Proxy, Resolver, Scratch, resolver, secret, wait};
use reqwest::Method;
use serde_json::Value;
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    visit_backlog::Platform,
    visits::{SOON, client, create, get, must_count, stored, visit},
};

/// Postgres with the resolver's schema, behind a proxy.
pub(crate) struct Database {
    pub(crate) scratch: Scratch,
    pub(crate) postgres: Postgres,
    pub(crate) proxy: Proxy,
    pub(crate) key: String,
}

impl Database {
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new().unwrap();
        let builder = Postgres::builder().scratch(&scratch);
        let builder = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value));
        let postgres = builder.start().await.unwrap();
        resolver::migrate(&scratch, &postgres.url()).await.unwrap().success().unwrap();
        let proxy = Proxy::start(postgres.addr()).await.unwrap();
        Self { scratch, postgres, proxy, key: secret::random_hex().unwrap() }
    }

    /// Starts a resolver that writes each visit to this spool before it answers.
    pub(crate) async fn resolver(&self, holder: &str, spool: &Path, url: &str) -> Resolver {
        let builder = Resolver::builder(&self.scratch, holder, &self.key).unwrap().database(url);
        let spool = spool.to_str().unwrap();
        builder.args(["--tune", "visits-flush=turn", "--visits-spool", spool]).start().await.unwrap()
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.postgres.client().await.unwrap().query_one(query, &[]).await.unwrap().get(0)
    }
}

/// Visits of a link that go on until they are stopped.
struct Visitors {
    stop: Arc<AtomicBool>,
    redirected: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
}

impl Visitors {
    fn start(resolver: &Resolver, code: &str, count: usize) -> Self {
        let (stop, redirected) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let url = format!("http://{}/{code}", resolver.addr());
        let visitor = |_| {
            let (stop, redirected, url) = (Arc::clone(&stop), Arc::clone(&redirected), url.clone());
            let client = client();
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = client.get(&url).send().await;
                    let is_redirect = answer.is_ok_and(|answer| answer.status().is_redirection());
                    redirected.fetch_add(u64::from(is_redirect), Ordering::Relaxed);
                    sleep(Duration::from_millis(1)).await;
                }
            })
        };
        let tasks = (0..count).map(visitor).collect();
        Self { stop, redirected, tasks }
    }

    /// Stops them, and returns the number of redirects.
    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.redirected.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_counts_once() {
    // A commit takes 100 ms, so that connections are cut within one.
    let database = Database::start(&[("commit_delay", "100000"), ("commit_siblings", "0")]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let resolver = database.resolver("cut", &spool, &database.postgres.url_via(&database.proxy)).await;
    let code = create(&resolver, &database.key).await;
    let in_doubt = async || resolver.metric("resolver_visit_batches_in_doubt_total").await.unwrap_or(0.0);
    let visitors = Visitors::start(&resolver, &code, 4);
    let watcher = database.postgres.client().await.unwrap();
    // Only those of batches, because a resolver asks for its position in between.
    let commits = "SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid)
                   WHERE state = 'active' AND query = 'COMMIT'
                   AND relation = 'visit'::regclass AND mode = 'RowExclusiveLock'";
    wait::until(SOON, "commits without an answer", async || {
        let under_way: i64 = watcher.query_one(commits, &[]).await.unwrap().get(0);
        if under_way > 0 {
            database.proxy.reset_all();
            sleep(Duration::from_millis(200)).await;
        }
        in_doubt().await >= 3.0
    })
    .await
    .unwrap();
    let redirected = visitors.stop().await;
    wait::until(SOON, "all visits are stored", async || {
        stored(&database.postgres).await.1 >= i64::try_from(redirected).unwrap()
    })
    .await
    .unwrap();
    must_count_bots_too(&resolver, &database.key, &code, redirected).await;
    let count = i64::try_from(redirected).unwrap();
    assert_eq!(stored(&database.postgres).await, (count, count));
}

/// Waits until a link has so many visits. The client of [`Visitors`] is taken for a bot.
async fn must_count_bots_too(resolver: &Resolver, key: &str, code: &str, expected: u64) {
    wait::until(SOON, "all visits are counted", async || {
        let link = get(resolver, key, &format!("short-urls/{code}")).await;
        link["visitsSummary"]["total"] == expected
    })
    .await
    .unwrap();
}

/// A process that was stopped while another one took over its spool, as after a node that was taken
/// for dead. What it stores later would count twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_process_that_comes_back_stores_nothing() {
    let platform = Platform::start().await;
    let (cluster, proxy) = (&platform.cluster, &platform.proxy);
    let mut stalled = platform.resolver("one", &cluster.postgres.url_via(proxy)).await;
    let (key, client) = (&cluster.api_key, client());
    let code = create(&stalled, key).await;
    for _ in 0..20 {
        assert!(visit(&client, &stalled, &code).await);
    }
    must_count(&stalled, key, &code, 20).await;
    proxy.set_both(Flow::Stall);
    for _ in 0..30 {
        assert!(visit(&client, &stalled, &code).await);
    }
    stalled.process.pause().await.unwrap();
    // The other node has the same volume; the lock of the first one's kernel does not reach it.
    let [spool, moved] = ["one", "other"].map(|holder| cluster.scratch.folder(holder).unwrap());
    for file in std::fs::read_dir(&spool).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), moved.join(file.file_name())).unwrap();
    }
    let other = platform.resolver("other", &cluster.postgres.url()).await;
    for _ in 0..10 {
        assert!(visit(&client, &other, &code).await);
    }
    must_count(&other, key, &code, 60).await;
    proxy.reset_all();
    proxy.set_both(Flow::Pass);
    stalled.process.resume().unwrap();
    wait::until(SOON, "the stalled process notices", async || {
        stalled.metric("resolver_visits_fenced").await == Some(1.0)
    })
    .await
    .unwrap();
    assert!(visit(&client, &stalled, &code).await, "redirects go on");
    must_count(&other, key, &code, 60).await;
    assert_eq!(stored(&cluster.postgres).await, (60, 60));
}

async fn delete_visits(resolver: &Resolver, key: &str, code: &str) {
    let url = format!("http://{}/rest/v3/short-urls/{code}/visits", resolver.addr());
    let call = reqwest::Client::new().request(Method::DELETE, url).header("X-Api-Key", key);
    let deleted: Value = call.send().await.unwrap().json().await.unwrap();
    assert!(deleted["deletedVisits"].is_u64(), "{deleted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_equal_rows_after_deletions_while_visits_pour_in_and_a_spool_replays() {
    let database = Database::start(&[]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let url = database.postgres.url_via(&database.proxy);
    let mut resolver = database.resolver("one", &spool, &url).await;
    let codes = [create(&resolver, &database.key).await, create(&resolver, &database.key).await];
    for round in 0..4 {
        let visitors = codes.each_ref().map(|code| Visitors::start(&resolver, code, 2));
        sleep(Duration::from_millis(300)).await;
        delete_visits(&resolver, &database.key, &codes[0]).await;
        // Visits from now on stay in the spool.
        database.proxy.set_both(Flow::Stall);
        sleep(Duration::from_millis(400)).await;
        if round % 2 == 1 {
            resolver.process.kill_now().unwrap();
            database.proxy.reset_all();
            database.proxy.set_both(Flow::Pass);
            drop(resolver);
            resolver = database.resolver("one", &spool, &url).await;
        } else {
            database.proxy.set_both(Flow::Pass);
        }
        delete_visits(&resolver, &database.key, &codes[0]).await;
        sleep(Duration::from_millis(200)).await;
        for visitors in visitors {
            visitors.stop().await;
        }
    }
    let (one, client) = (&codes[0], client());
    delete_visits(&resolver, &database.key, one).await;
    for _ in 0..7 {
        assert!(visit(&client, &resolver, one).await);
    }
    must_count_bots_too(&resolver, &database.key, one, 7).await;
    counters_must_equal_rows(&database).await;
    let tagged = get(&resolver, &database.key, "tags/news/visits?itemsPerPage=1").await;
    let rows = database.number("SELECT count(*) FROM visit WHERE link_id <> 0").await;
    assert_eq!(tagged["visits"]["pagination"]["totalItems"], rows, "both links have the tag");
}

/// Waits until no rows of deleted visits are left, and compares each kind of counters with the
/// rows.
async fn counters_must_equal_rows(database: &Database) {
    let sum =
        |condition: &str| format!("SELECT coalesce(sum(total), 0)::bigint FROM visit_day WHERE {condition}");
    wait::until(SOON, "counters equal rows", async || {
        let rows = database.number("SELECT count(*) FROM visit WHERE link_id <> 0").await;
        let mut sums = Vec::new();
        for condition in
            ["kind = 0", "kind = 1 AND part = 0", "kind = 2 AND part = 0", "kind = 2 AND part > 0"]
        {
            sums.push(database.number(&sum(condition)).await);
        }
        rows > 7 && sums.iter().all(|sum| *sum == rows)
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_of_a_day_without_a_partition_are_kept() {
    let database = Database::start(&[]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let mut resolver = database.resolver("one", &spool, &database.postgres.url()).await;
    let (code, client) = (create(&resolver, &database.key).await, client());
    assert!(visit(&client, &resolver, &code).await);
    must_count(&resolver, &database.key, &code, 1).await;
    let sql = database.postgres.client().await.unwrap();
    let partitions = "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
         WHERE inhparent = 'visit'::regclass AND relname ~ '^visit_[0-9]+$'";
    for partition in sql.query(partitions, &[]).await.unwrap() {
        let name: String = partition.get(0);
        let statements = format!(
            "ALTER TABLE visit DETACH PARTITION {name}; INSERT INTO visit SELECT * FROM {name}; DROP TABLE {name}"
        );
        sql.batch_execute(&statements).await.unwrap();
    }
    for _ in 0..5 {
        assert!(visit(&client, &resolver, &code).await);
    }
    must_count(&resolver, &database.key, &code, 6).await;
    assert_eq!(stored(&database.postgres).await, (6, 6));
    assert_eq!(database.number("SELECT count(*) FROM visit_default").await, 6);
    // A start prepares the days, and moves their rows.
    resolver.restart().await.unwrap();
    wait::until(SOON, "the rows are in their partition", async || {
        database.number("SELECT count(*) FROM visit_default").await == 0
    })
    .await
    .unwrap();
    assert_eq!(stored(&database.postgres).await, (6, 6));
    must_count(&resolver, &database.key, &code, 6).await;
}
