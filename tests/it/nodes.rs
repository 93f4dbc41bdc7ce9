//! Links that are divided among the nodes of a database, as Citus does it.
//!
//! Citus is in no registry. What it says of its nodes is a few rows, so one Postgres stands in for
//! a coordinator and two nodes, of which one is behind a proxy. The suite runs against a real Citus
//! with `SHORTMINT_CITUS_NODES` (`tests/README.md`).

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt as _, stream};
use harness::{Flow, Load, Postgres, Proxy, Resolver, Scratch, migrate, nodes, secret, wait};
use tokio_postgres::Client;

const SOON: Duration = Duration::from_secs(30);
const BUCKETS: i64 = 8;
const CREATES: usize = 2_000;
/// The bucket of a link by Postgres' own hash.
const BUCKET: &str = "(hashint8(id)::bigint + 2147483648) / (4294967296 / 8)";

struct Distributed {
    scratch: Scratch,
    postgres: Postgres,
    /// In front of the node with the odd buckets.
    proxy: Proxy,
    sql: Client,
    key: String,
}

impl Distributed {
    async fn start() -> Self {
        let scratch = Scratch::new().unwrap();
        let postgres = Postgres::builder().setting("shared_preload_libraries", "pg_stat_statements");
        let postgres = postgres.start_one().await.unwrap();
        let proxy = Proxy::start(postgres.addr()).await.unwrap();
        migrate(&scratch, &postgres.url()).await.unwrap().success().unwrap();
        let sql = postgres.client().await.unwrap();
        sql.batch_execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
        nodes::pretend(&sql, [postgres.addr(), proxy.addr()], BUCKETS).await.unwrap();
        Self { scratch, postgres, proxy, sql, key: secret::random_hex().unwrap() }
    }

    async fn resolver(&self) -> Resolver {
        let builder = Resolver::builder(&self.scratch, "resolver-0", &self.key).unwrap();
        builder.database(&self.postgres.url()).start().await.unwrap()
    }

    async fn number(&self, query: &str) -> i64 {
        self.sql.query_one(query, &[]).await.unwrap().get(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_of_one_bucket_and_a_read_asks_for_each_bucket_by_itself() {
    let database = Distributed::start().await;
    let resolver = database.resolver().await;
    let links = Load::on([&resolver]).clients(32).creates(CREATES).run().await.unwrap();

    let per_batch = format!("SELECT count(DISTINCT {BUCKET}) AS buckets FROM link GROUP BY xmin::text");
    assert_eq!(database.number(&format!("SELECT max(buckets) FROM ({per_batch}) AS batch")).await, 1);
    let buckets = format!("SELECT count(*) FROM (SELECT {BUCKET}, count(*) FROM link GROUP BY 1) AS bucket");
    assert_eq!(database.number(&buckets).await, BUCKETS, "all have links");
    let batches = database.number("SELECT count(DISTINCT xmin::text) FROM link").await;
    // A prepared COPY is counted once. Each asks for the time first.
    let (copies, inserts) =
        (calls(&database, "SELECT now(), (%").await, calls(&database, "INSERT INTO link %").await);
    assert_eq!((copies, inserts), (batches, 0), "a statement for each batch");
    assert!(batches <= i64::try_from(CREATES / 2).unwrap(), "{batches} batches");

    // Another process has none of them in its cache.
    drop(resolver);
    let resolver = database.resolver().await;
    let followed = stream::iter(links).for_each_concurrent(64, async |link| {
        assert_eq!(resolver.api.follow(&link.code).await.unwrap(), (302, Some(link.long_url)));
    });
    followed.await;
    let reads = calls(&database, "%FROM link WHERE id = ANY%").await;
    let batches = resolver.metric("resolver_link_reads_total").await.unwrap();
    assert!(
        f64::from(i32::try_from(reads).unwrap()) <= batches * 4.0,
        "{reads} statements of {batches} reads"
    );
}

async fn calls(database: &Distributed, like: &str) -> i64 {
    let calls =
        "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE ltrim(query, E'\\n ') LIKE $1";
    database.sql.query_one(calls, &[&like]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_away_holds_up_only_its_own_links() {
    let database = Distributed::start().await;
    let resolver = database.resolver().await;
    let links = Load::on([&resolver]).creates(200).run().await.unwrap();
    let codes: Vec<String> = links.iter().map(|link| link.code.clone()).collect();
    drop(resolver);
    let resolver = database.resolver().await;
    // The supply of numbers is there.
    resolver.api.create("https://example.com/first").await.unwrap();

    database.proxy.refuse().await;
    database.proxy.reset_all();
    let mut away = HashSet::new();
    for code in &codes {
        match resolver.api.follow(code).await.unwrap().0 {
            302 => {}
            503 => drop(away.insert(code.clone())),
            status => panic!("{status} for {code}"),
        }
    }
    assert!((60..140).contains(&away.len()), "{} of {} links", away.len(), codes.len());
    wait::until(SOON, "the node is known to be away", async || {
        resolver.metric("resolver_database_nodes_away").await == Some(1.0)
    })
    .await
    .unwrap();
    let made = Load::on([&resolver]).clients(8).creates(500).run().await.unwrap();
    assert_eq!(made.len(), 500, "creates go to the other node");

    database.proxy.accept().await.unwrap();
    wait::until(SOON, "the node's links redirect again", async || {
        let mut redirects = 0;
        for code in &away {
            redirects += usize::from(resolver.api.follow(code).await.unwrap().0 == 302);
        }
        redirects == away.len()
    })
    .await
    .unwrap();
    let odd = format!("SELECT count(*) FROM link WHERE {BUCKET} % 2 = 1");
    let before = database.number(&odd).await;
    wait::until(SOON, "the node gets links again", async || {
        resolver.api.create("https://example.com/again").await.unwrap();
        database.number(&odd).await > before
    })
    .await
    .unwrap();
}

/// What happens in between decides: a node that has restarted may be an older copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_restarted_gets_no_number_that_was_in_hand_before() {
    let mut database = Distributed::start().await;
    let resolver = database.resolver().await;
    let before = resolver.api.create("https://example.com/before").await.unwrap().code;
    let highest = "SELECT max(id) FROM link";
    let used = database.number(highest).await;

    database.proxy.set_both(Flow::Pass);
    database.postgres.restart().await.unwrap();
    database.sql = database.postgres.client().await.unwrap();
    wait::until(SOON, "creates work again", async || {
        resolver.api.try_create("https://example.com/after").await.is_ok_and(|answer| answer.status == 200)
    })
    .await
    .unwrap();
    assert!(database.number(highest).await > used + 500, "the rest of the block is given up");
    assert_eq!(resolver.api.follow(&before).await.unwrap().0, 302);
}
