//! Migrations of the schema while the tables are in use.

use std::time::Duration;

use harness::{Postgres, Scratch, migrate, wait};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(30);
/// Longer than a migration waits for a table.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// Takes back the last migration, so that it is pending.
const BACK: &str = "ALTER TABLE api_key DROP COLUMN secrets;
    DELETE FROM refinery_schema_history WHERE version = 19";

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_waits_for_a_long_transaction_and_holds_up_nobody() {
    let (scratch, postgres) = (Scratch::new().unwrap(), Postgres::start().await.unwrap());
    let url = postgres.url();
    migrate(&scratch, &url).await.unwrap().success().unwrap();
    let sql = postgres.client().await.unwrap();
    sql.batch_execute(BACK).await.unwrap();

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
        assert_eq!(applied().await, 18);
        long.batch_execute("COMMIT").await.unwrap();
    };
    let (migrated, ()) = tokio::join!(migrate(&scratch, &url), meanwhile);
    migrated.unwrap().success().unwrap();
    assert_eq!(applied().await, 19);
}
