//! Two replicas of ClickHouse, one of which fails.

use std::time::Duration;

use harness::{ClickhouseCluster, Scratch, clickhouse, wait};
use visit_store::{ClickhouseVisits, RowsRecord, VisitReader as _, VisitStore};
use visits::Subject;

use super::{Databases, commit, counts, erasures, visits};
use crate::visit_conformance::{all_rows, erasure, noon, register};

/// Rows of a batch.
const ROWS: i64 = 2_000;
const BATCHES: i64 = 60;
const A_MINUTE: Duration = Duration::from_secs(60);

async fn start() -> (ClickhouseCluster, Databases, Scratch) {
    let scratch = Scratch::new().unwrap();
    let cluster = ClickhouseCluster::start(&scratch, 2).await.unwrap();
    let databases = Databases::new(cluster.url("DATABASE"), cluster.replicas()[0].addr()).await;
    (cluster, databases, scratch)
}

/// Sends a record until its rows are stored.
async fn send(store: &ClickhouseVisits, record: &RowsRecord) {
    let (mut failed, mut record) = (None, record.clone());
    let sent = wait::until(A_MINUTE, "the rows are stored", async || {
        failed = store.store_rows(&record).await.err();
        record.may_be_stored |= failed.is_some();
        failed.is_none()
    });
    let sent = sent.await;
    assert!(sent.is_ok(), "{failed:?}");
}

/// Waits until a replica has each row once in both tables.
async fn has_once(cluster: &ClickhouseCluster, replica: usize, name: &str, rows: i64) {
    for table in ["visit", "visit_by_time"] {
        let count = format!("SELECT count(), uniqExact(id) FROM {name}.{table}");
        cluster.answers(replica, &count, &format!("{rows}\t{rows}"), A_MINUTE).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_while_batches_are_stored_costs_no_row_and_doubles_none() {
    let (mut cluster, mut databases, _scratch) = start().await;
    let (store, name) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    let mut records = Vec::new();
    for number in 0..BATCHES {
        let record = commit(&store, &mut producer, &visits(7, number * ROWS, ROWS)).await;
        // The replica that is asked first dies while this batch is on its way.
        let kill = async {
            if number == BATCHES / 3 {
                tokio::task::yield_now().await;
                cluster.replicas_mut()[0].process_mut().kill_now().unwrap();
            }
        };
        tokio::join!(send(&store, &record), kill);
        records.push(record);
        if number > BATCHES / 3 && number % 10 == 0 {
            // The dead replica may be the only one that has the last batch it took.
            let least = u64::try_from(number * ROWS).unwrap();
            let (by_link, by_time) = counts(&store, 7).await;
            assert!(
                by_link.min(by_time) >= least,
                "reads go to the live replica: {by_link}, {by_time}, {least}"
            );
        }
    }
    cluster.replicas_mut()[0].restart().await.unwrap();
    for replica in [0, 1] {
        has_once(&cluster, replica, &name, BATCHES * ROWS).await;
    }

    // The other one dies. The process, and another one, send everything again.
    cluster.replicas_mut()[1].process_mut().kill_now().unwrap();
    let other = databases.open(&name);
    for record in &mut records {
        record.may_be_stored = true;
        send(&store, record).await;
        send(&other, record).await;
    }
    cluster.replicas_mut()[1].restart().await.unwrap();
    for replica in [0, 1] {
        has_once(&cluster, replica, &name, BATCHES * ROWS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_two_processes_send_to_two_replicas_at_once_counts_once() {
    let (cluster, mut databases, _scratch) = start().await;
    let (store, name) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    // Their first server is the other one's second.
    let hosts = [0, 1].map(|replica: usize| cluster.replicas()[replica].addr().to_string()).join(",");
    let reversed = [1, 0].map(|replica: usize| cluster.replicas()[replica].addr().to_string()).join(",");
    databases.url = databases.url.replace(&hosts, &reversed);
    let other = databases.open(&name);
    for number in 0..20 {
        let record = commit(&store, &mut producer, &visits(7, number * ROWS, ROWS)).await;
        tokio::join!(send(&store, &record), send(&other, &record));
    }
    for replica in [0, 1] {
        has_once(&cluster, replica, &name, 20 * ROWS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_still_delays_a_batch_and_a_page_and_loses_nothing() {
    let (mut cluster, mut databases, _scratch) = start().await;
    let (store, name) = databases.fresh("").await;
    let mut producer = register(&store, 1).await;
    let first = commit(&store, &mut producer, &visits(7, 0, ROWS)).await;
    send(&store, &first).await;
    has_once(&cluster, 1, &name, ROWS).await;
    cluster.replicas_mut()[0].process_mut().pause().await.unwrap();
    assert_eq!(counts(&store, 7).await, (2_000, 2_000));
    let second = commit(&store, &mut producer, &visits(7, ROWS, ROWS)).await;
    send(&store, &second).await;
    assert_eq!(counts(&store, 7).await, (4_000, 4_000));
    cluster.replicas_mut()[0].process_mut().resume().unwrap();
    for replica in [0, 1] {
        has_once(&cluster, replica, &name, 2 * ROWS).await;
    }
}

mod long {
    use super::*;

    /// Three minutes, in which a server waits for the other.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_erasure_misses_no_row_that_a_replica_lacks() {
        let (cluster, mut databases, _scratch) = start().await;
        let (store, name) = databases.fresh("").await;
        let producer = register(&store, 1).await;
        // The second replica is asked first, and has fallen behind.
        let [first, second] = [0, 1].map(|replica: usize| cluster.replicas()[replica].addr().to_string());
        databases.url = databases.url.replace(&format!("{first},{second}"), &format!("{second},{first}"));
        for table in ["visit", "visit_by_time"] {
            let stop = format!("SYSTEM STOP FETCHES {name}.{table}");
            clickhouse::query(cluster.replicas()[1].addr(), &stop).await.unwrap();
        }
        let batch = erasure::with_addresses(&store, &producer, &erasures::visits(0)).await;
        store.store(&producer, &batch, 0).await.unwrap();
        send(&store, &RowsRecord::of(&batch, 0)).await;
        let eraser = databases.open(&name);
        let behind = eraser.rows(&all_rows(Subject::All(None))).await.unwrap();
        assert_eq!(behind, [], "the replica has no row");
        let id = eraser.erase(&erasure::erasure("192.0.2.0/24", noon(0))).await.unwrap().unwrap();
        assert_eq!(erasure::finish(&eraser, id).await.0, 20);
        assert_eq!(erasure::visitors(&store).await.len(), 40);
        erasure::must_say_how_many_rows(&store).await;
    }
}
