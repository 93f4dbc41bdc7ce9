//! I6 under every fault that can hit a COMMIT: an acknowledged write is stored, and a write
//! reported as failed is not.
//!
//! The server waits for a tenth of a second between the start of a commit and its flush
//! (`commit_delay`), so that the faults happen within it. Once the server is back, the reported
//! outcome of every write is compared with the database.

mod writes;

use std::{sync::Arc, time::Duration};

use codes::Keyspace;
use futures_util::future::join_all;
use harness::{Flow, Postgres, Proxy};
use numbers::Mark;
use store::{Comparison, Register, Settings, Store, postgres::PostgresStore};
use tokio::time::{sleep, timeout};
use writes::{CALL_WITHIN, GROUPS, Told, Write};

/// How long the server waits before it flushes a commit.
const COMMIT_DELAY: Duration = Duration::from_millis(100);

/// A Postgres server with slow commits and the resolver's schema, behind a proxy.
struct Slow {
    postgres: Postgres,
    proxy: Proxy,
    /// The number of the fault.
    round: usize,
}

impl Slow {
    async fn start() -> Self {
        let delay = COMMIT_DELAY.as_micros().to_string();
        let postgres =
            Postgres::builder().setting("commit_delay", &delay).setting("commit_siblings", "0").start();
        let postgres = postgres.await.unwrap();
        let proxy = postgres.proxy().await.unwrap();
        let slow = Self { postgres, proxy, round: 0 };
        let store = slow.store().await;
        store.migrate().await.unwrap();
        let keyspace = Keyspace::parse("default=6:0-9A-Za-z").unwrap();
        store.adopt_keyspaces(&[keyspace]).await.unwrap();
        store.adopt_fingerprint("aa").await.unwrap();
        slow
    }

    /// Returns a store that has compared its mark with the database since the server's start, as a
    /// resolver does with its first beat.
    async fn compared_store(&self) -> Arc<PostgresStore> {
        let store = self.store().await;
        store.poll_settings(None).await.unwrap();
        let since = store.server_start().and_then(|start| *start.borrow());
        store.advance(Mark(0), Comparison { raises: false, since }).await.unwrap();
        store
    }

    async fn store(&self) -> Arc<PostgresStore> {
        Arc::new(PostgresStore::new(&self.postgres.url_via(&self.proxy), None).await.unwrap())
    }

    /// Returns the server that the fault hits. With nodes, each of them has its turn.
    fn struck(&mut self) -> &mut Postgres {
        match self.round % (self.postgres.nodes().len() + 1) {
            0 => &mut self.postgres,
            node => &mut self.postgres.nodes_mut()[node - 1],
        }
    }
}

/// Makes every kind of write during a fault, and compares the reported outcomes with the database.
///
/// Each round waits for `tenths` tenths of the commit delay and then causes the fault, which also
/// brings the server back.
#[expect(clippy::print_stdout, reason = "counts for readers of the test output")]
async fn every_write_is_told_the_truth(
    slow: &mut Slow,
    tenths: &[u32],
    fault: impl AsyncFn(&mut Slow, Duration),
) {
    let (mut number, mut done, mut failed, mut doubt) = (0, 0, 0, 0);
    for (first, group) in GROUPS.into_iter().enumerate() {
        for (round, tenths) in tenths.iter().enumerate() {
            slow.round = first + round;
            let store = slow.compared_store().await;
            let mut writes = Vec::new();
            for kind in group {
                number += 1;
                writes.push(Arc::new(Write::prepare(*kind, number, &store).await));
            }
            let calls = writes.iter().map(|write| {
                let write = Arc::clone(write);
                tokio::spawn(async move { timeout(CALL_WITHIN, write.run()).await.unwrap() })
            });
            let calls: Vec<_> = calls.collect();
            fault(slow, COMMIT_DELAY * *tenths / 10).await;
            for (write, told) in writes.iter().zip(join_all(calls).await) {
                let (told, (rows, whole)) = (told.unwrap(), write.rows(&slow.postgres).await);
                let kind = write.kind;
                match told {
                    Told::Done => {
                        assert_eq!(rows, whole, "{kind:?} was acknowledged");
                        done += 1;
                    }
                    Told::Failed => {
                        assert_eq!(rows, 0, "{kind:?} was said to have failed");
                        failed += 1;
                    }
                    Told::InDoubt => {
                        assert!([0, whole].contains(&rows), "{kind:?}: {rows} of {whole}");
                        doubt += 1;
                    }
                }
            }
        }
    }
    println!("{number} writes: {done} acknowledged, {failed} failed, {doubt} in doubt");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_immediate_stop_in_a_commit_loses_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.struck().stop_immediately().await.unwrap();
        slow.struck().restart().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_killed_beside_a_commit_loses_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.struck().kill_a_backend().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_stop_in_a_commit_loses_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.struck().restart().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cut_in_a_commit_lose_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.proxy.reset_all();
        // A commit whose connection was cut may still complete: the server has not noticed yet.
        sleep(2 * COMMIT_DELAY).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_never_come_are_in_doubt_or_failed_and_never_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[5], async |slow, after| {
        sleep(after).await;
        slow.proxy.set_both(Flow::Stall);
        // Longer than the store's deadlines for everything but an import.
        sleep(Duration::from_secs(7)).await;
        slow.proxy.reset_all();
        slow.proxy.set_both(Flow::Pass);
    })
    .await;
}

/// An error that only COMMIT raises, as with a deferred constraint that an operator added.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_at_commit_is_told_as_a_failure() {
    let slow = Slow::start().await;
    let client = slow.postgres.client().await.unwrap();
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                  $$ BEGIN RAISE EXCEPTION 'refused at COMMIT'; END $$";
    client.batch_execute(refuse).await.unwrap();
    // Visits have tests of their own, and partitions take no such trigger.
    let tables =
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'visit%'";
    let tables: Vec<String> = client.query(tables, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let create = |table: &String| {
        format!(
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE OR DELETE ON {table}
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    };
    let remove = |table: &String| format!("DROP TRIGGER refuse ON {table}");
    // One commit for all tables, because commits are slow. A statement for each, because
    // distributed tables need it.
    let change = async |each: &dyn Fn(&String) -> String| {
        client.batch_execute("BEGIN").await.unwrap();
        for table in &tables {
            client.batch_execute(&each(table)).await.unwrap();
        }
        client.batch_execute("COMMIT").await.unwrap();
    };
    let mut number = 1_000;
    for kind in GROUPS.concat() {
        number += 1;
        let store = slow.compared_store().await;
        let write = Write::prepare(kind, number, &store).await;
        change(&create).await;
        let told = write.run().await;
        change(&remove).await;
        let (rows, _) = write.rows(&slow.postgres).await;
        assert_eq!((told != Told::Done, rows), (true, 0), "{kind:?} was told {told:?}");
    }
}
