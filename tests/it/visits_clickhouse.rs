//! Visits in ClickHouse and Postgres: the conformance suite of the port, and what only two
//! databases have. Servers are 18.16, alone or as two replicas, and the engine of 26.9.

mod erasures;
mod replicas;
mod resolver;
mod transfers;

use std::{net::SocketAddr, time::Duration};

use codes::LinkId;
use harness::{Clickhouse, Postgres, Scratch, clickhouse, wait};
use store::{Store as _, postgres::PostgresStore};
use visit_store::{
    ClickhouseVisits, PostgresVisits, Producer, RowQuery, RowsRecord, Standing, VisitReader as _, VisitStore,
};
use visits::{Subject, VisitId};

use crate::visit_conformance::{Visit, all_rows, common_cases, erasure, noon, pages, register};

const SOON: Duration = Duration::from_secs(60);
/// Transfers of counters begin an hour after the first start.
const BEGUN: &str = "UPDATE visit_state SET transfers_from = now()";

/// Databases for many stores, each without visits.
struct Databases {
    postgres: Postgres,
    /// The address of ClickHouse, with `DATABASE` in place of a name.
    url: String,
    /// A server of it, for statements of the test itself.
    server: SocketAddr,
    count: u32,
}

impl Databases {
    /// Prepares a database of links that all others are copies of.
    async fn new(url: String, server: SocketAddr) -> Self {
        let postgres = Postgres::builder().start_one().await.unwrap();
        let links = PostgresStore::new(&postgres.url(), None).await.unwrap();
        links.migrate().await.unwrap();
        drop(links);
        Self { postgres, url, server, count: 0 }
    }

    /// Returns a store without visits, and its name. `statements` run in its Postgres database.
    async fn fresh(&mut self, statements: &str) -> (ClickhouseVisits, String) {
        self.count += 1;
        let name = format!("d{}", self.count);
        let admin = client(&self.postgres_url("postgres")).await;
        let create = format!("CREATE DATABASE {name} TEMPLATE shortmint");
        // A template must have no connections, and those of its migration may still be closing.
        let create = async || admin.batch_execute(&create).await.is_ok();
        wait::until(SOON, "the database is copied", create).await.unwrap();
        let client = client(&self.postgres_url(&name)).await;
        client.batch_execute(BEGUN).await.unwrap();
        client.batch_execute(statements).await.unwrap();
        let store = self.open(&name);
        for _ in 0..2 {
            store.migrate().await.unwrap();
        }
        (store, name)
    }

    /// Returns the store of that name, as another process opens it.
    fn open(&self, name: &str) -> ClickhouseVisits {
        self.open_at(name, self.server)
    }

    /// Returns it with another address of its server.
    fn open_at(&self, name: &str, server: SocketAddr) -> ClickhouseVisits {
        let counters = PostgresVisits::new(&self.postgres_url(name)).unwrap();
        let url = self.url.replace("DATABASE", name).replace(&self.server.to_string(), &server.to_string());
        ClickhouseVisits::new(url.parse().unwrap(), counters)
    }

    fn postgres_url(&self, name: &str) -> String {
        format!("postgres://shortmint@{}/{name}", self.postgres.addr())
    }

    async fn sql(&self, statement: &str) -> String {
        clickhouse::query(self.server, statement).await.unwrap()
    }
}

pub(crate) async fn client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Stores a batch in Postgres, and returns the record of its rows.
async fn commit(store: &ClickhouseVisits, producer: &mut Producer, visits: &[Visit]) -> RowsRecord {
    assert!(store.keeps_rows_apart());
    let known = store.changes(0).await.unwrap().version;
    let batch = erasure::with_addresses(store, producer, visits).await;
    store.store(producer, &batch, known).await.unwrap();
    producer.position += 1;
    RowsRecord::of(&batch, known)
}

/// Returns how many rows of a link there are, by link and by time.
async fn counts(store: &ClickhouseVisits, link: i64) -> (u64, u64) {
    let of_link = all_rows(Subject::Link(LinkId::from_stored(link)));
    let all = store.rows(&RowQuery { subject: Subject::All(None), ..of_link }).await.unwrap();
    let by_time = all.iter().filter(|row| row.link.is_some_and(|found| found.get() == link)).count();
    (store.count_rows(&of_link).await.unwrap(), by_time as u64)
}

fn visits(link: i64, from: i64, count: i64) -> Vec<Visit> {
    (from..from + count).map(|at| Visit::of(link, noon(0) + at)).collect()
}

/// Runs cases of the suite, each with databases of its own.
async fn conform(databases: &mut Databases) {
    macro_rules! cases {
        ($($group:ident: $($case:ident),+;)+) => {$($({
            let store = databases.fresh("").await.0;
            crate::visit_conformance::$group::$case(&store).await;
        })+)+};
    }
    common_cases!(cases);
    let few = "INSERT INTO tag (id, name) OVERRIDING SYSTEM VALUE VALUES (40, 'one'), (41, 'other');
        INSERT INTO visit_tag (tag_id, link_id) VALUES (40, 2), (40, 5), (40, 6), (41, 2), (41, 3)";
    let many = "INSERT INTO tag (id, name) OVERRIDING SYSTEM VALUE VALUES (40, 'one');
        INSERT INTO visit_tag (tag_id, link_id) SELECT 40, id FROM generate_series(1000, 200000) AS id;
        INSERT INTO visit_tag (tag_id, link_id) VALUES (40, 2), (40, 5), (40, 6)";
    for links in [few, many] {
        let store = databases.fresh(links).await.0;
        pages::rows_of_a_tag_are_those_of_its_links(&store).await;
    }
}

/// The process ends after the transaction, after an insert, or within one whose rows were cut
/// short, and the next process sends the record.
async fn a_record_completes_its_batch_wherever_it_was_interrupted(databases: &mut Databases) {
    let (twin, twin_name) = databases.fresh("").await;
    let (store, name) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    let all = i64::MAX;
    for (number, (by_link, by_time)) in
        [(0, 0), (all, 0), (300, 0), (all, 300), (all, all)].iter().enumerate()
    {
        let from = i64::try_from(number).unwrap() * 10_000;
        let batch = [visits(7, from, 1_000), visits(8, from + 5_000, 500)].concat();
        let record = commit(&store, &mut producer, &batch).await;
        twin.store_rows(&record).await.unwrap();
        let low = record.rows.iter().map(|row| row.id.get()).min().unwrap();
        for (table, rows) in [("visit", by_link), ("visit_by_time", by_time)] {
            let copy = format!("INSERT INTO {name}.{table} SELECT * FROM {twin_name}.{table}");
            databases.sql(&format!("{copy} WHERE id >= {low} ORDER BY id LIMIT {rows}")).await;
        }
        let store = databases.open(&name);
        let record = RowsRecord::from_bytes(&record.to_bytes()).unwrap();
        assert_eq!(store.standing(&producer).await.unwrap(), Standing::At(record.to));
        for _ in 0..2 {
            store.store_rows(&record).await.unwrap();
        }
        let expected = 1_000 * (number as u64 + 1);
        assert_eq!(counts(&store, 7).await, (expected, expected), "batch {number}");
        assert_eq!(counts(&store, 8).await, (expected / 2, expected / 2), "batch {number}");
    }
}

/// A batch sent again two hours later counts once: the servers have forgotten its blocks. 18.16
/// remembers none without a cluster, and the tables of the engine only the last one here.
async fn a_batch_that_the_servers_have_forgotten_counts_once(databases: &mut Databases) {
    let (twin, twin_name) = databases.fresh("").await;
    let (store, name) = databases.fresh("").await;
    if databases.sql("SELECT version()").await != "18.16.1" {
        for table in ["visit", "visit_by_time"] {
            let forget = "MODIFY SETTING non_replicated_deduplication_window = 1";
            databases.sql(&format!("ALTER TABLE {name}.{table} {forget}")).await;
        }
    }
    let mut producer = register(&store, 1).await;
    let mut records = Vec::new();
    for number in 0..5 {
        records.push(commit(&store, &mut producer, &visits(7, number * 1_000, 1_000)).await);
        store.store_rows(records.last().unwrap()).await.unwrap();
    }
    for record in &mut records {
        record.may_be_stored = true;
        store.store_rows(record).await.unwrap();
        databases.open(&name).store_rows(record).await.unwrap();
    }
    assert_eq!(counts(&store, 7).await, (5_000, 5_000));
    // Sent without a question, the first batch would count twice.
    twin.store_rows(&records[0]).await.unwrap();
    databases.sql(&format!("INSERT INTO {name}.visit SELECT * FROM {twin_name}.visit")).await;
    assert_eq!(counts(&store, 7).await, (6_000, 5_000));
}

/// Visits are deleted after their batch was stored, and before its rows were.
async fn rows_that_come_after_their_deletion_are_deleted(databases: &mut Databases) {
    let (store, _) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    let all = [visits(7, 0, 100), visits(9, 200, 100), visits(8, 500, 100)].concat();
    let record = commit(&store, &mut producer, &all).await;
    for link in [7, 9] {
        let link = Subject::Link(LinkId::from_stored(link));
        assert_eq!(store.delete(link, VisitId::floor(noon(0) + 400)).await.unwrap(), 100);
    }
    while store.delete_rows().await.unwrap().is_some() {}
    let known = store.changes(0).await.unwrap().version;
    store.store_rows(&record).await.unwrap();
    assert_eq!((counts(&store, 7).await, counts(&store, 9).await), ((100, 100), (100, 100)));
    assert!(store.changes(0).await.unwrap().version > known, "batches made before are refused");
    while store.delete_rows().await.unwrap().is_some() {}
    assert_eq!((counts(&store, 7).await, counts(&store, 9).await), ((0, 0), (0, 0)));
    assert_eq!(counts(&store, 8).await, (100, 100));
}

/// A record is removed once its rows are stored. Also tables that exist already get the settings.
async fn insertions_wait_for_the_disk(databases: &mut Databases) {
    let (store, name) = databases.fresh("").await;
    let is_durable = async || {
        let tables = format!("SELECT create_table_query FROM system.tables WHERE database = '{name}'");
        let tables = databases.sql(&tables).await;
        let of = |setting: &str| tables.matches(setting).count();
        (of("fsync_after_insert = 1"), of("fsync_part_directory = 1"))
    };
    assert_eq!(is_durable().await, (3, 3));
    for table in ["visit", "visit_by_time", "visit_day"] {
        let reset = format!("ALTER TABLE {name}.{table} RESET SETTING fsync_after_insert");
        databases.sql(&reset).await;
    }
    assert_eq!(is_durable().await, (0, 3));
    store.migrate().await.unwrap();
    assert_eq!(is_durable().await, (3, 3));
}

async fn rows_are_there_once(databases: &mut Databases) {
    a_record_completes_its_batch_wherever_it_was_interrupted(databases).await;
    a_batch_that_the_servers_have_forgotten_counts_once(databases).await;
    rows_that_come_after_their_deletion_are_deleted(databases).await;
}

async fn rows_are_erased(databases: &mut Databases) {
    erasures::many_rows_are_erased_in_steps(databases).await;
    erasures::a_row_that_comes_again_between_the_tables_is_deleted_in_both(databases).await;
    erasures::rows_that_come_after_a_question_are_erased(databases).await;
    erasures::rows_that_come_at_any_step_are_erased(databases).await;
    erasures::rows_that_come_again_at_any_step_are_erased_once(databases).await;
}

/// Starts the recent ClickHouse and a Postgres.
async fn recent() -> (Clickhouse, Databases, Scratch) {
    let scratch = Scratch::new().unwrap();
    let server = Clickhouse::start_recent(&scratch).await.unwrap();
    let databases = Databases::new(server.url("DATABASE"), server.addr()).await;
    (server, databases, scratch)
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_in_the_clickhouse_of_debian_are_there_once() {
        let scratch = Scratch::new().unwrap();
        let server = Clickhouse::start(&scratch).await.unwrap();
        let mut databases = Databases::new(server.url("DATABASE"), server.addr()).await;
        rows_are_there_once(&mut databases).await;
        rows_are_erased(&mut databases).await;
        transfers::counters_are_transferred(&mut databases).await;
        conform(&mut databases).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_in_a_recent_clickhouse_are_there_once() {
    let (_server, mut databases, _scratch) = recent().await;
    insertions_wait_for_the_disk(&mut databases).await;
    rows_are_there_once(&mut databases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_in_a_recent_clickhouse_are_erased() {
    let (_server, mut databases, _scratch) = recent().await;
    rows_are_erased(&mut databases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_transferred_to_a_recent_clickhouse() {
    let (_server, mut databases, _scratch) = recent().await;
    transfers::counters_are_transferred(&mut databases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recent_clickhouse_passes_the_suite() {
    let (_server, mut databases, _scratch) = recent().await;
    conform(&mut databases).await;
}
