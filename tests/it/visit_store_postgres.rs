//! The conformance suite of stores of visits, on Postgres.

use std::time::Duration;

use harness::{Postgres, Scratch};
use store::{Store as _, postgres::PostgresStore};
use visit_store::{PostgresVisits, Remaining, VisitStore as _};
use visits::{Day, Month, VisitId};

use crate::{
    visit_conformance::{batches, common_cases, folding, sql_cases, today},
    visits_clickhouse::client,
};

/// Creates a database of its own for a case, and returns its URL.
async fn database(postgres: &Postgres, name: &str) -> String {
    // Names of Postgres have at most 63 bytes.
    let name = &name[..name.len().min(60)];
    let client = postgres.client().await.unwrap();
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let url = postgres.url();
    let (server, _) = url.rsplit_once('/').unwrap();
    let url = format!("{server}/{name}");
    PostgresStore::new(&url, None).await.unwrap().migrate().await.unwrap();
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_passes_the_suite_of_stores_of_visits() {
    let scratch = Scratch::new().unwrap();
    let postgres = Postgres::builder().scratch(&scratch).setting("fsync", "off").start().await.unwrap();
    macro_rules! cases {
        ($($group:ident: $($case:ident),+;)+) => {$($({
            let url = database(&postgres, stringify!($case)).await;
            crate::visit_conformance::$group::$case(&PostgresVisits::new(&url).unwrap()).await;
        })+)+};
    }
    common_cases!(cases);
    sql_cases!(cases);
    rows_in_use_stay_open(&database(&postgres, "rows_in_use").await).await;
    damaged_months_keep_no_day_open(&database(&postgres, "damaged_months").await).await;
    indexes_of_closed_days_are_rebuilt(&database(&postgres, "rebuilt").await).await;
    let url = database(&postgres, "events").await;
    let links = PostgresStore::new(&url, None).await.unwrap();
    batches::events_of_a_batch_wait_for_webhooks_once(&PostgresVisits::new(&url).unwrap(), &links).await;
    let url = database(&postgres, "totals_of_links").await;
    let links = PostgresStore::new(&url, None).await.unwrap();
    let visits = PostgresVisits::new(&url).unwrap();
    folding::totals_of_links_outlive_their_counters_until_they_are_deleted(&visits, &links).await;
}

/// Closing waits for no batch: a row that one is changing stays open, and the others are closed.
async fn rows_in_use_stay_open(url: &str) {
    let store = PostgresVisits::new(url).unwrap();
    let mut client = client(url).await;
    let past = today().minus(9).get();
    for slot in [1, 2] {
        let add =
            format!("INSERT INTO visit_day SELECT 1, 0, 0, {past}, {slot}, {slot}, 0, 1, 0, '', '', '', ''");
        client.batch_execute(&add).await.unwrap();
    }
    let batch = client.transaction().await.unwrap();
    batch.execute("UPDATE visit_day SET total = total + 10 WHERE slot = 2", &[]).await.unwrap();
    assert_eq!(store.merge().await.unwrap(), Remaining::Something, "one row is closed");
    assert_eq!(store.merge().await.unwrap(), Remaining::Held, "the other one is in use");
    batch.commit().await.unwrap();
    assert_eq!(store.merge().await.unwrap(), Remaining::Something);
    assert_eq!(store.merge().await.unwrap(), Remaining::Nothing);
    let row =
        client.query_one("SELECT count(*), sum(total)::bigint, sum(version)::bigint FROM visit_day", &[]);
    let row = row.await.unwrap();
    assert_eq!([0, 1, 2].map(|column| row.get::<_, i64>(column)), [1, 13, 2]);
}

/// Counters that cannot be read, in months that would be merged, and a day that is to be closed.
async fn damaged_months_keep_no_day_open(url: &str) {
    let store = PostgresVisits::new(url).unwrap();
    let client = client(url).await;
    let last_month = Month::from_stored(today().month().get() - 1).first_day().get();
    let add = |day: i32, slot: i16, bytes: usize| {
        format!(
            "INSERT INTO visit_day SELECT 1, 0, 0, {day}, {slot}, 1, 0, 1, 0, '',
                                          convert_to(repeat('x', {bytes}), 'UTF8'), '', ''"
        )
    };
    client.batch_execute(&add(last_month, -1, 20_000)).await.unwrap();
    client.batch_execute(&add(last_month, 3, 1)).await.unwrap();
    client.batch_execute(&add(last_month + 1, 3, 1)).await.unwrap();
    assert!(store.oldest_open().await.unwrap() > Duration::from_secs(86_400));
    assert_eq!(store.merge().await.unwrap(), Remaining::Something, "days were closed");
    assert_eq!(store.oldest_open().await.unwrap(), Duration::ZERO);
    assert_eq!(store.merge().await.unwrap(), Remaining::Nothing);
    let months = client.query_one("SELECT count(*) FROM visit_month", &[]).await.unwrap();
    assert_eq!(months.get::<_, i64>(0), 0, "the month is left as it is");
    let open = "SELECT count(*), max(octet_length(dimensions)) FROM visit_day WHERE slot < 0";
    let row = client.query_one(open, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (2, 20_001));
}

/// Links arrive in any order, which leaves a third of an index empty until the day is closed.
async fn indexes_of_closed_days_are_rebuilt(url: &str) {
    let store = PostgresVisits::new(url).unwrap();
    let client = client(url).await;
    let closed = today().minus(2);
    store.keep(closed).await.unwrap();
    for day in [closed, today()] {
        let first = VisitId::floor(day.start()).get();
        let add = format!(
            "INSERT INTO visit SELECT (random() * 1e12)::bigint, {first} + n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
             FROM generate_series(1, 100000) n"
        );
        client.batch_execute(&add).await.unwrap();
    }
    client.batch_execute("ANALYZE visit").await.unwrap();
    let index = |day: Day| format!("visit_{}_link_id_id_idx", day.get());
    let size = async |day: Day| {
        let size = format!("SELECT pg_relation_size('{}')", index(day));
        client.query_one(&size, &[]).await.unwrap().get::<_, i64>(0)
    };
    let loose = [size(closed).await, size(today()).await];
    assert!(loose.iter().all(|bytes| *bytes > 3_800_000), "{loose:?}");
    // What a process leaves that stopped at the work: an index that is not valid.
    let left = format!("{}_ccnew", index(closed));
    client
        .batch_execute(&format!("CREATE INDEX {left} ON visit_{} (link_id, id)", closed.get()))
        .await
        .unwrap();
    let spoil = format!("UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{left}'::regclass");
    client.batch_execute(&spoil).await.unwrap();
    client.batch_execute("CREATE ROLE stranger LOGIN").await.unwrap();
    let (_, server) = url.split_once('@').unwrap();
    let stranger = PostgresVisits::new(&format!("postgres://stranger@{server}")).unwrap();
    assert!(
        !stranger.rebuild_index(today().minus(9)).await.unwrap(),
        "a role that does not own the days leaves them as they are"
    );
    assert!(!store.rebuild_index(closed).await.unwrap(), "a day that goes soon is left as it is");
    assert!(store.rebuild_index(today().minus(9)).await.unwrap());
    assert!(!store.rebuild_index(today().minus(9)).await.unwrap(), "once is enough");
    assert!(size(closed).await < 2_900_000, "{}", size(closed).await);
    assert_eq!(size(today()).await, loose[1], "visits of today go on to arrive");
    let gone = client.query_one("SELECT to_regclass($1) IS NULL", &[&left]).await.unwrap();
    assert!(gone.get::<_, bool>(0), "what was left over is removed");
    let plan = format!("SELECT count(*) FROM pg_inherits WHERE inhrelid = '{}'::regclass", index(closed));
    assert_eq!(
        client.query_one(&plan, &[]).await.unwrap().get::<_, i64>(0),
        1,
        "it serves pages of all days"
    );
}
