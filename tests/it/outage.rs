//! An outage of all of etcd under a steady load (must show 4): no create fails, and the supply
//! metric predicted that.

use std::time::Duration;

use harness::{Cluster, History, Load, Resolver, wait};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);

/// The environment variable with the length of the outage in seconds. The project promises 60.
const SECONDS_VARIABLE: &str = "SHORTMINT_OUTAGE_SECONDS";
const SECONDS_DEFAULT: u32 = 15;

/// Creates per second on all resolvers together.
const RATE: u32 = 200;
const RESOLVERS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn without_any_etcd_no_create_fails_for_as_long_as_the_supply_in_hand_foretold() {
    let outage = seconds();
    // One block of each resolver lasts one and a half times as long as the outage, and the next one
    // is requested early.
    let block = (outage * RATE * 3 / 2 / u32::try_from(RESOLVERS).unwrap()).to_string();
    let cluster = Cluster::builder().etcd(3).issuers(2).resolvers(RESOLVERS).alone().lease_ttl("2s");
    let cluster = cluster.issuer_args(["--block-min", &block, "--block-max", &block]);
    let (mut cluster, history) = (cluster.start().await.unwrap(), History::default());
    let load = Load::on(&cluster.resolvers).clients(32).creates(usize::MAX).per_second(RATE);
    let mut load = load.recorded(&history).start();
    load.reaches(2 * usize::try_from(RATE).unwrap(), SOON).await.unwrap();
    // With this margin the predicted end is still after the outage if the measured rate is a little
    // too low.
    wait::until(SOON, "the supply in hand outlasts the outage", async || {
        let foretold = foretold_seconds(&cluster.resolvers).await;
        foretold.is_finite() && foretold >= f64::from(outage) * 1.25
    })
    .await
    .unwrap();

    cluster.etcd.stop_all().unwrap();
    let stopped = Instant::now();
    let acknowledged = load.acknowledged();
    let length = Duration::from_secs(u64::from(outage));
    wait::until(2 * length, "the outage is over", async || stopped.elapsed() >= length).await.unwrap();
    assert!(cluster.leader().await.is_none(), "an issuer leads without etcd");
    // A busy machine may fall behind, but not by half.
    let during = load.acknowledged() - acknowledged;
    assert!(during >= usize::try_from(outage * RATE / 2).unwrap(), "only {during} creates in {length:?}");
    let left = numbers_in_hand(&cluster.resolvers).await;
    cluster.etcd.start_all().await.unwrap();

    wait::until(SOON, "allocation goes on by itself", async || {
        let in_hand = numbers_in_hand(&cluster.resolvers).await;
        in_hand.iter().zip(&left).all(|(now, then)| now > then)
    })
    .await
    .unwrap();
    load.reaches(load.acknowledged() + usize::try_from(2 * RATE).unwrap(), SOON).await.unwrap();
    load.wind_down();
    load.finish().await.unwrap();
    let report = history.check(&cluster).await.unwrap();
    assert_eq!((report.failed_count, report.unknown_count), (0, 0), "{report}");
    assert!(cluster.issuers.iter_mut().all(|issuer| issuer.process.is_running()));
}

fn seconds() -> u32 {
    let set = std::env::var(SECONDS_VARIABLE).ok();
    set.map_or(SECONDS_DEFAULT, |text| text.parse().unwrap())
}

/// Returns for how many seconds the resolver that runs dry first can mint, by its own metric.
async fn foretold_seconds(resolvers: &[Resolver]) -> f64 {
    let mut least = f64::INFINITY;
    for resolver in resolvers {
        least = least.min(resolver.metric("resolver_supply_seconds").await.unwrap());
    }
    least
}

async fn numbers_in_hand(resolvers: &[Resolver]) -> Vec<u64> {
    let mut all = Vec::new();
    for resolver in resolvers {
        all.push(resolver.numbers_in_hand().await.unwrap());
    }
    all
}
