//! Migrations of the schema while the tables are in use.

use std::time::Duration;

use harness::{Postgres, Scratch, migrate, wait};
use store::postgres::migrate_to;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(30);
/// Longer than a migration waits for a table.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// A migration that changes a table which every call of the API reads.
const OF_KEYS: i32 = 19;
/// A migration that does nothing but create an index of links.
const OF_INDEX: i32 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_waits_for_a_long_transaction_and_holds_up_nobody() {
    let (scratch, postgres) = (Scratch::new().unwrap(), Postgres::start().await.unwrap());
    let url = postgres.url();
    migrate_to(&url, OF_KEYS - 1).await.unwrap();
    let sql = postgres.client().await.unwrap();

    let version = "SELECT max(version) FROM refinery_schema_history";
    let applied = async || sql.query_one(version, &[]).await.unwrap().get::<_, i32>(0);
    let long = postgres.client().await.unwrap();
    long.batch_execute("BEGIN; SELECT count(*) FROM api_key").await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'api_key'::regclass";
    let other = postgres.client().await.unwrap();
    let meanwhile = async {
        for _ in 0..3 {
            wait::until(SOON, "the migration waits for the table", async || {
                sql.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 1
            })
            .await
            .unwrap();
            // This read is behind the migration, and the long transaction is not over.
            timeout(READ_WITHIN, other.query("SELECT * FROM api_key", &[])).await.unwrap().unwrap();
            sleep(Duration::from_millis(600)).await;
        }
        assert_eq!(applied().await, OF_KEYS - 1);
        long.batch_execute("COMMIT").await.unwrap();
    };
    let (migrated, ()) = tokio::join!(migrate(&scratch, &url), meanwhile);
    migrated.unwrap().success().unwrap();
    assert!(applied().await >= OF_KEYS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_was_rolled_back_leaves_the_newer_schema_as_it_is() {
    let (scratch, postgres) = (Scratch::new().unwrap(), Postgres::start().await.unwrap());
    let url = postgres.url();
    migrate(&scratch, &url).await.unwrap().success().unwrap();
    let sql = postgres.client().await.unwrap();
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         VALUES (900, 'of_a_later_release', '2030-01-01T00:00:00Z', '1')";
    sql.batch_execute(newer).await.unwrap();
    migrate(&scratch, &url).await.unwrap().success().unwrap();
    let version = "SELECT max(version) FROM refinery_schema_history";
    assert_eq!(sql.query_one(version, &[]).await.unwrap().get::<_, i32>(0), 900);
}

/// An index that was built in a transaction would wait for the one that has written, and every
/// later create would wait behind it.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_links_is_built_while_links_are_created_and_again_if_it_was_broken_off() {
    let (scratch, postgres) = (Scratch::new().unwrap(), Postgres::start().await.unwrap());
    let url = postgres.url();
    migrate_to(&url, OF_INDEX - 1).await.unwrap();
    let [sql, long, other] = [
        postgres.client().await.unwrap(),
        postgres.client().await.unwrap(),
        postgres.client().await.unwrap(),
    ];
    let link =
        |id: u32| format!("INSERT INTO link VALUES ({id}, 'https://a.example', NULL, false, true, now(), 1)");
    // In this phase the index is in the catalogue, and waits for the transaction below.
    let building =
        "SELECT pid FROM pg_stat_progress_create_index WHERE phase = 'waiting for writers before build'";
    long.batch_execute(&format!("BEGIN; {}", link(1))).await.unwrap();
    let meanwhile = async {
        wait::until(SOON, "the index is being built", async || {
            sql.query_opt(building, &[]).await.unwrap().is_some()
        })
        .await
        .unwrap();
        timeout(READ_WITHIN, other.batch_execute(&link(2))).await.unwrap().unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index";
        assert_eq!(sql.query(end, &[]).await.unwrap().len(), 1);
        let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
        assert_eq!(sql.query_one(invalid, &[]).await.unwrap().get::<_, i64>(0), 1);
        long.batch_execute("COMMIT").await.unwrap();
    };
    let (migrated, ()) = tokio::join!(migrate(&scratch, &url), meanwhile);
    migrated.unwrap().success().unwrap();
    let standing = "SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid
         WHERE relname IN ('link_created_at', 'link_deleted', 'link_crawlable') AND indisvalid";
    assert_eq!(sql.query_one(standing, &[]).await.unwrap().get::<_, i64>(0), 3);
}
