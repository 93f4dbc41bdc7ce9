//! I6 under every fault that can hit a COMMIT: what was acknowledged is stored, and what is said to have failed is not.
//!
//! The server waits for a tenth of a second between a commit's beginning and its flush (`commit_delay`), so that the faults find
//! it there. What each write was told is compared with the database after it is back.

mod writes;

use std::{sync::Arc, time::Duration};

use codes::{Fingerprint, Keyspace};
use futures_util::future::join_all;
use harness::{Flow, Postgres, Proxy};
use numbers::Mark;
use store::{Comparison, Register, Settings, Store, postgres::PostgresStore};
use tokio::time::{sleep, timeout};
use writes::{CALL_WITHIN, GROUPS, Told, Write};

/// How long the server waits before it flushes a commit.
const COMMIT_DELAY: Duration = Duration::from_millis(100);

/// A server whose commits take their time, and our schema.
struct Slow {
    postgres: Postgres,
    proxy: Proxy,
}

impl Slow {
    async fn start() -> Self {
        let delay = COMMIT_DELAY.as_micros().to_string();
        let postgres =
            Postgres::builder().setting("commit_delay", &delay).setting("commit_siblings", "0").start();
        let postgres = postgres.await.unwrap();
        let proxy = Proxy::start(postgres.addr()).await.unwrap();
        let slow = Self { postgres, proxy };
        let store = slow.store().await;
        store.migrate().await.unwrap();
        let keyspace = Keyspace::parse("default=6:0-9A-Za-z").unwrap();
        store.adopt_keyspaces(&[keyspace]).await.unwrap();
        store.adopt_fingerprint(&Fingerprint::from_stored("aa".to_owned())).await.unwrap();
        slow
    }

    /// A store as after the first beat of its resolver since the server's start.
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
}

/// Makes every kind of write while a fault happens, and compares what was told with what is stored.
///
/// Each round waits for so many tenths of the commits' delay before the fault, which brings the server back itself.
#[expect(clippy::print_stdout, reason = "counts for whoever looks at the run")]
async fn every_write_is_told_the_truth(
    slow: &mut Slow,
    tenths: &[u32],
    fault: impl AsyncFn(&mut Slow, Duration),
) {
    let (mut number, mut done, mut failed, mut doubt) = (0, 0, 0, 0);
    for group in GROUPS {
        for tenths in tenths {
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
        slow.postgres.stop_immediately().await.unwrap();
        slow.postgres.restart().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_killed_beside_a_commit_loses_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.postgres.kill_a_backend().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_stop_in_a_commit_loses_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.postgres.restart().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cut_in_a_commit_lose_nothing_that_was_acknowledged() {
    let mut slow = Slow::start().await;
    every_write_is_told_the_truth(&mut slow, &[2, 5, 9], async |slow, after| {
        sleep(after).await;
        slow.proxy.reset_all();
        // What was cut off may still commit: the server does not know yet.
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
        // Past the store's deadlines for everything but an import.
        sleep(Duration::from_secs(7)).await;
        slow.proxy.reset_all();
        slow.proxy.set_both(Flow::Pass);
    })
    .await;
}

/// An error that only COMMIT raises, as a deferred constraint of an operator's own does.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_at_commit_is_told_as_a_failure() {
    let slow = Slow::start().await;
    let client = slow.postgres.client().await.unwrap();
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                  $$ BEGIN RAISE EXCEPTION 'refused at COMMIT'; END $$";
    client.batch_execute(refuse).await.unwrap();
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    let tables: Vec<String> = client.query(tables, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let create = |table: &String| {
        format!(
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE OR DELETE ON {table}
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();"
        )
    };
    let create: String = tables.iter().map(create).collect();
    let remove: String = tables.iter().map(|table| format!("DROP TRIGGER refuse ON {table};")).collect();
    let mut number = 1_000;
    for kind in GROUPS.concat() {
        number += 1;
        let store = slow.compared_store().await;
        let write = Write::prepare(kind, number, &store).await;
        client.batch_execute(&create).await.unwrap();
        let told = write.run().await;
        client.batch_execute(&remove).await.unwrap();
        let (rows, _) = write.rows(&slow.postgres).await;
        assert_eq!((told != Told::Done, rows), (true, 0), "{kind:?} was told {told:?}");
    }
}
