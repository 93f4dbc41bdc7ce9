//! The servers and the visits of a set.

use std::{collections::HashMap, time::Duration};

use anyhow::Context as _;
use codes::LinkId;
use harness::{Clickhouse, Load as Creates, Postgres, Resolver, Scratch, resolver, secret, wait};
use serde_json::json;
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls};
use visit_store::{Batch, ClickhouseVisits, PostgresVisits, Remaining, RowsRecord, SpoolId, VisitStore};
use visits::{DAY, Day, QUARTER, VisitId};

use super::{Args, Platform, Set};
use crate::{progress, visits::load::Load};

/// Visits of a batch.
const BATCH: u64 = 20_000;
/// One of so many links has the tag.
const TAGGED: usize = 100;
/// Tables of Postgres.
const TABLES: [(&str, &[&str]); 3] = [
    ("counters", &["visit_day", "visit_month", "visit_marks"]),
    ("totals of links", &["link_seen"]),
    ("texts", &["visit_text"]),
];
/// The time within which counters follow the tags of links.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(60);
/// The tag.
pub(super) const TAG: &str = "campaign";

/// The stored visits, and the names to ask for them by.
pub(super) struct Loaded {
    /// The code of the first link, which a set of one link visits.
    pub(super) code: String,
    /// Its id.
    pub(super) link: i64,
    /// The id of the tag.
    pub(super) tag: i64,
    /// The first day with visits.
    pub(super) first: Day,
    /// The day of the last visit.
    pub(super) last: Day,
    /// How long storing took.
    pub(super) seconds: f64,
    /// Bytes on disk, and what they are of.
    pub(super) bytes: Vec<(String, i64)>,
}

/// Starts Postgres and a resolver.
pub(super) async fn start(args: &Args, set: Set) -> anyhow::Result<Platform> {
    progress::show(&format!("{}: starting the servers …", set.name()));
    let scratch = Scratch::new()?;
    let postgres = Postgres::builder().scratch(&scratch);
    let postgres = postgres.setting("max_wal_size", "8GB").setting("shared_buffers", "1GB").start().await?;
    resolver::migrate(&scratch, &postgres.url()).await?.success()?;
    let key = secret::random_hex()?;
    let builder = Resolver::builder(&scratch, "pages", &key)?.database(&postgres.url());
    let clickhouse = match args.clickhouse {
        true => Some(Clickhouse::start_recent(&scratch).await?),
        false => None,
    };
    let store = clickhouse.iter().flat_map(|server| ["--visits-store".to_owned(), server.url("visits")]);
    let builder = builder.args(["--visits-keep", "400d"]).args(store);
    let resolver = builder.start().await?;
    let links = if set == Set::Links { usize::try_from(args.links)? } else { 1 };
    if links > 1 {
        Creates::on([&resolver]).clients(64).creates(links - links / TAGGED).run().await?;
    }
    for _ in 0..links.div_ceil(TAGGED) {
        let body = json!({ "longUrl": "https://example.org/tagged", "tags": [TAG] });
        resolver.api.create_with(&body).await?;
    }
    let (sql, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await?;
    tokio::spawn(connection);
    Ok(Platform { postgres, clickhouse, resolver, key, sql })
}

/// Stores the visits of a set.
pub(super) async fn fill(platform: &Platform, args: &Args, set: Set) -> anyhow::Result<Loaded> {
    let Platform { sql, postgres, resolver, .. } = platform;
    let tag: i64 = sql.query_one("SELECT id FROM tag", &[]).await?.get(0);
    let links: Vec<i64> =
        sql.query("SELECT id FROM link ORDER BY id", &[]).await?.iter().map(|row| row.get(0)).collect();
    let tagged = sql.query("SELECT link_id FROM link_tag ORDER BY link_id", &[]).await?;
    let tagged: HashMap<LinkId, Vec<i64>> =
        tagged.iter().map(|row| (LinkId::from_stored(row.get(0)), vec![tag])).collect();
    let is_followed = async || {
        let count = sql.query_one("SELECT count(*) FROM visit_tag", &[]).await;
        count.is_ok_and(|row| row.get::<_, i64>(0) == i64::try_from(tagged.len()).unwrap_or(0))
    };
    wait::until(FOLLOWED_WITHIN, "counters follow the tags of links", is_followed).await?;
    let link = tagged.keys().map(|link| link.get()).min().context("a link has the tag")?;
    let listed = resolver
        .api
        .http()
        .get(format!("{}/rest/v3/short-urls?tags[]={TAG}&orderBy=dateCreated-ASC", resolver.api.url()));
    let listed: serde_json::Value = listed.header("X-Api-Key", &platform.key).send().await?.json().await?;
    let code =
        listed["shortUrls"]["data"][0]["shortCode"].as_str().context("the link has a code")?.to_owned();
    let (store, rows) = (open_store(platform)?, PostgresVisits::new(&postgres.url())?);
    let today: i32 =
        sql.query_one("SELECT (extract(epoch FROM now())::bigint / 86400)::integer", &[]).await?.get(0);
    let last = Day::from_stored(today - 1);
    let first = last.minus(match set {
        Set::Year => 364,
        Set::Burst => 0,
        Set::Links => 89,
    });
    prepare_days(platform, first, last).await?;
    let mut producer = store.register(SpoolId(7), "bench").await?;
    let mut of_rows = store.register(SpoolId(8), "rows to compare with").await?;
    let mut load = Load::new(11);
    load.tags = tagged;
    let begun = Instant::now();
    let (from, span) = match set {
        Set::Burst => (first.start() + 10 * 3_600 * 1_000_000, QUARTER - 1_000_000),
        Set::Year | Set::Links => (first.start(), DAY * i64::from(last.get() - first.get() + 1)),
    };
    let known = store.changes(-1).await?.version;
    let batches = args.visits / BATCH;
    for number in 0..batches {
        progress::show(&format!("{}: {} of {} visits stored", set.name(), number * BATCH, args.visits));
        let at = |place: u64| {
            let whole = i128::from(span) * i128::from(number * BATCH + place) / i128::from(args.visits);
            from + i64::try_from(whole).unwrap_or(0)
        };
        let times: Vec<i64> = (0..BATCH).map(at).collect();
        let batch = load.batch(&producer, &times, |load| match set {
            Set::Links => {
                LinkId::from_stored(links[usize::try_from(load.below(links.len() as u64)).unwrap_or(0)])
            }
            Set::Year | Set::Burst => LinkId::from_stored(link),
        });
        store.store(&producer, &batch, known).await?;
        producer.position = batch.to;
        if store.keeps_rows_apart() {
            store.store_rows(&RowsRecord::of(&batch, known)).await?;
            let from = of_rows.position;
            let only = Batch { from, to: from + 1, rows: batch.rows, ..Batch::default() };
            rows.store(&of_rows, &only, known).await?;
            of_rows.position = only.to;
        }
    }
    progress::show(&format!("{}: merging counters …", set.name()));
    settle(store.as_ref(), sql).await?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Loaded { code, link, tag, first, last, seconds, bytes: sizes(platform).await? })
}

fn open_store(Platform { postgres, clickhouse, .. }: &Platform) -> anyhow::Result<Box<dyn VisitStore>> {
    let counters = PostgresVisits::new(&postgres.url())?;
    let Some(server) = clickhouse else { return Ok(Box::new(counters)) };
    let address = server.url("visits").parse().map_err(anyhow::Error::msg)?;
    Ok(Box::new(ClickhouseVisits::new(address, counters)))
}

/// Does what the upkeep and autovacuum would do within days.
async fn settle(store: &dyn VisitStore, sql: &Client) -> anyhow::Result<()> {
    sql.execute("UPDATE visit_state SET transfers_from = now()", &[]).await?;
    while store.merge().await? == Remaining::Something {}
    while store.fold_link_visits().await? {}
    sql.batch_execute("VACUUM FULL visit_day").await?;
    sql.batch_execute("VACUUM ANALYZE").await?;
    Ok(())
}

/// Returns bytes on disk, and what they are of.
async fn sizes(Platform { sql, clickhouse, .. }: &Platform) -> anyhow::Result<Vec<(String, i64)>> {
    let mut bytes = Vec::new();
    for (what, tables) in TABLES {
        let size =
            "SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM unnest($1::text[]) AS name";
        bytes.push((format!("{what} in Postgres"), sql.query_one(size, &[&tables]).await?.get(0)));
    }
    for (what, table) in [("counters", "visit_day"), ("rows", "visit"), ("rows by time", "visit_by_time")] {
        let Some(server) = clickhouse else { break };
        let size = format!("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = '{table}'");
        bytes.push((format!("{what} in ClickHouse"), server.query(&size).await?.trim().parse()?));
    }
    Ok(bytes)
}

/// Creates the partitions that a resolver has made when these days were to come.
async fn prepare_days(platform: &Platform, first: Day, last: Day) -> anyhow::Result<()> {
    for day in first.get()..=last.get() {
        let day = Day::from_stored(day);
        let (from, to) = (VisitId::floor(day.start()).get(), VisitId::floor(day.next().start()).get());
        let name = day.get();
        let create = format!(
            "CREATE TABLE IF NOT EXISTS visit_{name} PARTITION OF visit FOR VALUES FROM ({from}) TO ({to})"
        );
        platform.sql.batch_execute(&create).await?;
    }
    Ok(())
}
