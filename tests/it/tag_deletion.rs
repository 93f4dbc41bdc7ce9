//! Fault 37: a tag with many links is deleted while visits are stored.

use std::time::Duration;

use harness::{Pipeline, Postgres, Resolver, wait};
use reqwest::Method;
use tokio::{
    task::JoinHandle,
    time::{Instant, interval},
};

use crate::{
    visit_backlog::Platform,
    visits::{SOON, client, create, must_count, stored, visit},
};

/// The environment variables with the number of tagged links, and of visits in a second.
const LINKS_VARIABLE: &str = "SHORTMINT_TAG_LINKS";
const LINKS_DEFAULT: u64 = 10_000;
const RATE_VARIABLE: &str = "SHORTMINT_TAG_VISITS";
const RATE_DEFAULT: usize = 300;
/// Longest pause between stored visits that is promised while a tag is deleted.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a deletion may take: a million links take minutes.
const DELETED_WITHIN: Duration = Duration::from_secs(3_600);

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(variable: &str, default: T) -> T {
    std::env::var(variable).map_or(default, |number| number.parse().unwrap())
}

/// Gives the tag `news` many links, each with the counters of a day, and a hundredth of them with
/// those of a year. The tag has the counters of a year.
async fn fill(postgres: &Postgres, links: u64) {
    let fill = format!(
        "INSERT INTO link_tag (tag_id, link_id) SELECT tag.id, 1000000000 + number
             FROM tag, generate_series(1, {links}) AS number WHERE name = 'news';
         INSERT INTO visit_tag (tag_id, link_id) SELECT tag_id, link_id FROM link_tag WHERE link_id BETWEEN 1000000000 AND 2000000000;
         INSERT INTO visit_day SELECT 0, 1000000000 + number, part, day - age, slot, total, bots, version, appended,
                 quarters, dimensions, visitors, addresses
             FROM visit_day, generate_series(1, {links}) AS number,
                 LATERAL generate_series(1, CASE WHEN number % 100 = 0 THEN 365 ELSE 1 END) AS age
             WHERE kind = 0;
         INSERT INTO visit_day SELECT kind, subject, part, day - age, slot, total, bots, version, appended,
                 quarters, dimensions, visitors, addresses
             FROM visit_day, generate_series(1, 365) AS age WHERE kind = 1;
         ANALYZE"
    );
    postgres.client().await.unwrap().batch_execute(&fill).await.unwrap();
}

/// Visits at a steady rate, until it is aborted.
fn visitors(resolver: &Resolver, code: &str, per_second: usize) -> JoinHandle<()> {
    let (addr, code) = (resolver.addr(), code.to_owned());
    tokio::spawn(async move {
        let mut pipeline = Pipeline::connect(addr, &code).await.unwrap();
        let mut beat = interval(Duration::from_millis(100));
        loop {
            beat.tick().await;
            pipeline.follow(per_second / 10).await.unwrap();
        }
    })
}

/// Waits until nothing of the tag is left, and returns the longest time without a stored visit.
async fn longest_pause(resolver: &Resolver, platform: &Platform) -> Duration {
    let left = "SELECT (EXISTS (SELECT 1 FROM tag_change)
         OR EXISTS (SELECT 1 FROM visit_tag WHERE link_id BETWEEN 1000000000 AND 2000000000)
         OR EXISTS (SELECT 1 FROM link_tag WHERE link_id BETWEEN 1000000000 AND 2000000000))::integer::bigint";
    let (mut last, mut longest, mut count) = (Instant::now(), Duration::ZERO, 0.0);
    wait::until(DELETED_WITHIN, "the deletion is done", async || {
        let stored = resolver.metric("resolver_visits_stored_total").await.unwrap_or(count);
        longest = longest.max(last.elapsed());
        if stored > count {
            (count, last) = (stored, Instant::now());
        }
        platform.number(left).await == 0
    })
    .await
    .unwrap();
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_are_stored_while_a_tag_of_many_links_is_deleted() {
    let (links, rate) = (number(LINKS_VARIABLE, LINKS_DEFAULT), number(RATE_VARIABLE, RATE_DEFAULT));
    let platform = Platform::start().await;
    let (postgres, key) = (&platform.cluster.postgres, &platform.cluster.api_key);
    let resolver = platform.resolver("one", &postgres.url()).await;
    // Each process follows the tags.
    let _idle = platform.resolver("idle", &postgres.url()).await;
    let code = create(&resolver, key).await;
    assert!(visit(&client(), &resolver, &code).await);
    must_count(&resolver, key, &code, 1).await;
    fill(postgres, links).await;

    let visitors = visitors(&resolver, &code, rate);
    let began = Instant::now();
    let url = format!("http://{}/rest/v3/tags?tags[]=news", resolver.addr());
    let call = reqwest::Client::new().request(Method::DELETE, url).header("X-Api-Key", key);
    let answer = call.send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    println!("{links} links: answered after {:?}", began.elapsed());
    let longest = longest_pause(&resolver, &platform).await;
    println!("done after {:?}; {longest:?} at most without a stored visit", began.elapsed());
    visitors.abort();
    assert!(longest < PAUSE, "no visit was stored for {longest:?}");
    counters_must_be_gone(&resolver, &platform, &code).await;
}

async fn counters_must_be_gone(resolver: &Resolver, platform: &Platform, code: &str) {
    let counters = "SELECT count(*) FROM visit_day WHERE kind = 1";
    wait::until(SOON, "the counters of the tag are gone", async || platform.number(counters).await == 0)
        .await
        .unwrap();
    wait::until(SOON, "all visits are stored", async || {
        resolver.metric("resolver_visit_blocks_waiting").await == Some(0.0)
    })
    .await
    .unwrap();
    let (rows, _) = stored(&platform.cluster.postgres).await;
    let link = crate::visits::get(
        resolver,
        &platform.cluster.api_key,
        &format!("short-urls/{code}/visits?itemsPerPage=1"),
    )
    .await;
    assert_eq!(link["visits"]["pagination"]["totalItems"], rows);
}
