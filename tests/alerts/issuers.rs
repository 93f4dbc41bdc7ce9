//! Alerts on leadership and on etcd.

use std::time::Duration;

use harness::{Flow, Issuer, Load, Proxy};
use tokio::time::sleep;

use crate::{
    case::Case,
    run::Part,
    stage::{Setup, Stage},
};

const SOON: Duration = Duration::from_secs(60);
/// More changes of the leader than rolling updates cause.
const REVOCATIONS: usize = 8;
/// A delay of each direction. A transaction takes longer than a disk in order does, and a
/// keep-alive is still in time.
const SLOW: Duration = Duration::from_millis(170);
/// A quota that is small, and large enough for the file to grow by small parts of it.
const QUOTA: u64 = 64 << 20;
/// Mebibytes that do not fit.
const ALL: usize = 80;

/// Returns the parts with one etcd as usual, and one that is small.
pub(crate) fn parts() -> Vec<Part> {
    let usual = vec![
        Case::page("ShortmintNoLeader", "all issuers stopped (SIGSTOP)", no_leader),
        Case::page("ShortmintTwoLeaders", "an issuer of another cluster beside them", two_leaders),
        Case::ticket("ShortmintLeaderFlapping", "the leader's lease revoked again and again", flapping),
        Case::ticket("ShortmintEtcdFailing", "one issuer cut off from etcd", failing),
        Case::ticket("ShortmintEtcdSlow", "each call to etcd takes 340 ms longer", slow),
    ];
    let small = vec![
        Case::ticket("ShortmintEtcdSpaceLow", "85 % of etcd's quota used", space_low),
        Case::page("ShortmintLedgerNotWritten", "etcd filled (NOSPACE)", not_written),
    ];
    let small_etcd =
        Setup { etcd_members: 1, etcd_args: &["--quota-backend-bytes=67108864"], ..Setup::default() };
    vec![
        Part { name: "issuers", faster: 1, setup: Setup::default(), cases: usual },
        Part { name: "a small etcd", faster: 1, setup: small_etcd, cases: small },
    ]
}

async fn no_leader(stage: &mut Stage) -> anyhow::Result<()> {
    for issuer in &mut stage.cluster.issuers {
        issuer.process.pause().await?;
    }
    stage.fires().await;
    stage.cluster.issuers.iter_mut().try_for_each(|issuer| issuer.process.resume())
}

async fn two_leaders(stage: &mut Stage) -> anyhow::Result<()> {
    let builder = Issuer::builder(&stage.cluster.scratch, "stray", &stage.cluster.etcd.endpoints())?;
    stage.cluster.issuers.push(builder.cluster("another").start().await?);
    stage.scrape()?;
    stage.fires().await;
    stage.cluster.issuers.pop();
    stage.scrape()
}

async fn flapping(stage: &mut Stage) -> anyhow::Result<()> {
    for _ in 0..REVOCATIONS {
        stage.cluster.wait_leader(SOON).await?;
        for lease in stage.cluster.etcd.leases().await? {
            stage.cluster.etcd.revoke_lease(lease).await?;
        }
        sleep(Duration::from_secs(2)).await;
    }
    stage.fires().await;
    Ok(())
}

async fn failing(stage: &mut Stage) -> anyhow::Result<()> {
    let cut = Proxy::start(stage.cluster.etcd.members()[0].addr()).await?;
    let builder = Issuer::builder(&stage.cluster.scratch, "cut-off", &cut.url())?;
    stage.cluster.issuers.push(builder.start().await?);
    stage.scrape()?;
    stage.are_scraped().await?;
    stage.strikes();
    cut.refuse().await;
    cut.reset_all();
    stage.fires().await;
    stage.cluster.issuers.pop();
    stage.scrape()
}

async fn slow(stage: &mut Stage) -> anyhow::Result<()> {
    stage.etcd_proxies.iter().for_each(|proxy| proxy.set_both(Flow::Delay(SLOW)));
    stage.fires().await;
    stage.etcd_proxies.iter().for_each(|proxy| proxy.set_both(Flow::Pass));
    Ok(())
}

async fn space_low(stage: &mut Stage) -> anyhow::Result<()> {
    while stage.cluster.etcd.size().await? < QUOTA / 100 * 85 {
        anyhow::ensure!(!stage.cluster.etcd.fill(1).await?, "etcd is full already");
    }
    stage.strikes();
    stage.fires().await;
    stage.cluster.etcd.make_room().await
}

async fn not_written(stage: &mut Stage) -> anyhow::Result<()> {
    anyhow::ensure!(stage.cluster.etcd.fill(ALL).await?, "etcd is not full");
    stage.strikes();
    // Creates need blocks, and so writes of the ledger.
    let load = Load::on(&stage.cluster.resolvers).creates(usize::MAX).retries_unavailable().start();
    stage.fires().await;
    stage.cluster.etcd.make_room().await?;
    load.wind_down();
    load.end().await.map(drop)
}
