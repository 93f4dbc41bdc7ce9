//! Visits waiting in a spool, by its metrics, while they cannot be stored; and slots of producers
//! that ended without giving theirs back (fault 39).

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{Cluster, Pipeline, Postgres, Proxy, Resolver, wait};
use tokio::time::Instant;
use visit_store::{PostgresVisits, SpoolId, VisitStore as _};

use crate::{
    visit_faults::Database,
    visits::{SOON, client, create, must_count, stored, visit},
};

/// The environment variable with the number of redirects while the database is away.
const VISITS_VARIABLE: &str = "SHORTMINT_BACKLOG_VISITS";
const VISITS_DEFAULT: usize = 5_000;
/// How long all of them may take to be stored afterwards.
const STORED_WITHIN: Duration = Duration::from_secs(600);
/// Pods that were killed, each with a spool.
const KILLED: u128 = 200;
/// File name extension of a spool's segments.
const SEGMENT: &str = "segment";
/// Bytes of a block's header, and where the length of the rest of the block is.
const HEADER: usize = 48;
const LENGTH: std::ops::Range<usize> = 20..24;

fn segments(spool: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(spool).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == SEGMENT)).collect()
}

/// Counts the bytes and the blocks of a spool on disk.
fn on_disk(spool: &Path) -> (f64, f64) {
    let (mut bytes, mut blocks) = (0_u32, 0_u32);
    for segment in segments(spool) {
        let content = std::fs::read(segment).unwrap();
        bytes += u32::try_from(content.len()).unwrap();
        let mut place = 0;
        while place < content.len() {
            let length = content[place..][LENGTH].try_into().unwrap();
            place += HEADER + usize::try_from(u32::from_le_bytes(length) & !(1 << 31)).unwrap();
            blocks += 1;
        }
    }
    (f64::from(bytes), f64::from(blocks))
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_what_waits_while_the_database_is_away() {
    let count = std::env::var(VISITS_VARIABLE).map_or(VISITS_DEFAULT, |count| count.parse().unwrap());
    let database = Database::start(&[]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let resolver = database.resolver("one", &spool, &database.postgres.url_via(&database.proxy)).await;
    let code = create(&resolver, &database.key).await;
    assert!(visit(&client(), &resolver, &code).await);
    must_count(&resolver, &database.key, &code, 1).await;
    let metric = async |name: &str| resolver.metric(&format!("resolver_{name}")).await.unwrap();
    wait::until(SOON, "nothing waits", async || metric("visit_blocks_waiting").await == 0.0).await.unwrap();
    assert_eq!(metric("visits_registered").await, 1.0);
    assert_eq!(metric("visit_oldest_waiting_seconds").await, 0.0);
    let stored_at = metric("visit_last_stored_timestamp_seconds").await;
    let (_, before) = on_disk(&spool);

    database.proxy.refuse().await;
    database.proxy.reset_all();
    let away = Instant::now();
    Pipeline::connect(resolver.addr(), &code).await.unwrap().follow(count).await.unwrap();
    let (bytes, blocks) = on_disk(&spool);
    assert_eq!(metric("visit_spool_bytes").await, bytes);
    assert_eq!(metric("visit_blocks_waiting").await, blocks - before);
    assert!(metric("visit_spool_bytes_max").await >= bytes);
    wait::until(SOON, "the oldest gets older", async || {
        metric("visit_oldest_waiting_seconds").await >= 2.0 && away.elapsed() >= Duration::from_secs(2)
    })
    .await
    .unwrap();
    assert_eq!(metric("visit_last_stored_timestamp_seconds").await, stored_at);
    let age = "resolver_last_success_age_seconds";
    let age = resolver.metric_where(age, "server=\"database\"").await;
    assert!(age >= Some(2.0), "the database has been away for longer: {age:?}");
    println!("{count} redirects: {blocks} blocks, {bytes} bytes wait");

    database.proxy.accept().await.unwrap();
    wait::until(STORED_WITHIN, "nothing waits", async || metric("visit_blocks_waiting").await == 0.0)
        .await
        .unwrap();
    must_count(&resolver, &database.key, &code, 1 + u64::try_from(count).unwrap()).await;
    assert_eq!(metric("visit_oldest_waiting_seconds").await, 0.0);
    assert!(metric("visit_last_stored_timestamp_seconds").await > stored_at);
}

/// Registers spools that never come back, and lets a time pass after each as it does between deaths
/// of pods.
async fn kill_pods(postgres: &Postgres) {
    let store = PostgresVisits::new(&postgres.url()).unwrap();
    let sql = postgres.client().await.unwrap();
    for pod in 0..KILLED {
        let spool = SpoolId(1 << 64 | pod);
        store.register(spool, "a killed pod").await.unwrap();
        sql.batch_execute("UPDATE visit_producer SET seen_at = seen_at - interval '10 seconds'")
            .await
            .unwrap();
    }
}

/// Two hundred pods in half an hour, and all their slots still taken.
#[tokio::test(flavor = "multi_thread")]
async fn after_two_hundred_killed_pods_the_next_one_stores_its_visits() {
    let database = Database::start(&[]).await;
    kill_pods(&database.postgres).await;
    let taken = "SELECT count(*) FROM visit_producer WHERE slot IS NOT NULL";
    assert_eq!(database.number(taken).await, 128);
    let spool = database.scratch.folder("spool").unwrap();
    let resolver = database.resolver("next", &spool, &database.postgres.url()).await;
    let code = create(&resolver, &database.key).await;
    for _ in 0..5 {
        assert!(visit(&client(), &resolver, &code).await);
    }
    must_count(&resolver, &database.key, &code, 5).await;
    assert_eq!(resolver.metric("resolver_visits_registered").await, Some(1.0));
}

/// A process that found no slot says so, and gets one as soon as there is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_a_slot_tells_and_registers_once_one_is_silent() {
    let database = Database::start(&[]).await;
    let store = PostgresVisits::new(&database.postgres.url()).unwrap();
    for pod in 0..128 {
        store.register(SpoolId(1 << 64 | pod), "a pod").await.unwrap();
    }
    let spool = database.scratch.folder("spool").unwrap();
    let resolver = database.resolver("late", &spool, &database.postgres.url()).await;
    let code = create(&resolver, &database.key).await;
    assert!(visit(&client(), &resolver, &code).await);
    wait::until(SOON, "it tells", async || {
        resolver.metric("resolver_visit_slots_missing_total").await > Some(0.0)
    })
    .await
    .unwrap();
    assert_eq!(resolver.metric("resolver_visits_registered").await, Some(0.0));
    for name in ["used", "max"] {
        assert_eq!(resolver.metric(&format!("resolver_visit_slots_{name}")).await, Some(128.0));
    }
    assert!(resolver.metric("resolver_visit_blocks_waiting").await > Some(0.0));
    let sql = database.postgres.client().await.unwrap();
    let silent = "UPDATE visit_producer SET seen_at = now() - interval '6 minutes' WHERE slot = 77";
    sql.batch_execute(silent).await.unwrap();
    must_count(&resolver, &database.key, &code, 1).await;
}

/// A platform with an issuer, for more than one resolver.
pub(crate) struct Platform {
    pub(crate) cluster: Cluster,
    /// In front of Postgres.
    pub(crate) proxy: Proxy,
}

impl Platform {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
        cluster.wait_leader(SOON).await.unwrap();
        let proxy = Proxy::start(cluster.postgres.addr()).await.unwrap();
        Self { cluster, proxy }
    }

    /// Starts a resolver that writes each visit to its spool before it answers.
    pub(crate) async fn resolver(&self, holder: &str, url: &str) -> Resolver {
        let spool = self.cluster.scratch.folder(holder).unwrap();
        let flags = ["--tune", "visits-flush=turn", "--visits-spool", spool.to_str().unwrap()];
        self.cluster.resolver(holder).unwrap().database(url).args(flags).start().await.unwrap()
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.cluster.postgres.client().await.unwrap().query_one(query, &[]).await.unwrap().get(0)
    }
}

/// A node that was cut off for so long that its slot was given to another.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_slot_was_taken_loses_nothing_and_stores_nothing_twice() {
    let platform = Platform::start().await;
    let (postgres, key) = (&platform.cluster.postgres, &platform.cluster.api_key);
    let mut cut = platform.resolver("cut", &postgres.url_via(&platform.proxy)).await;
    let (code, client) = (create(&cut, key).await, client());
    for _ in 0..7 {
        assert!(visit(&client, &cut, &code).await);
    }
    must_count(&cut, key, &code, 7).await;
    platform.proxy.refuse().await;
    platform.proxy.reset_all();
    for _ in 0..11 {
        assert!(visit(&client, &cut, &code).await);
    }
    cut.process.pause().await.unwrap();
    // Later pods take the slot that has been silent for longest.
    kill_pods(postgres).await;
    assert_eq!(
        platform.number("SELECT coalesce(slot, -1)::bigint FROM visit_producer WHERE holder = 'cut'").await,
        -1
    );
    let other = platform.resolver("other", &postgres.url()).await;
    for _ in 0..5 {
        assert!(visit(&client, &other, &code).await);
    }
    must_count(&other, key, &code, 12).await;

    cut.process.resume().unwrap();
    platform.proxy.accept().await.unwrap();
    must_count(&other, key, &code, 23).await;
    assert!(visit(&client, &cut, &code).await);
    must_count(&cut, key, &code, 24).await;
    assert_eq!(stored(postgres).await, (24, 24));
    let slots = "SELECT count(DISTINCT slot) FROM visit_producer WHERE holder IN ('cut', 'other')";
    assert_eq!(platform.number(slots).await, 2);
}
