//! Fault 35: logs that cannot be written, beside an outage of Postgres and of etcd.

use std::time::Duration;

use harness::{Cluster, ErrorOutput, Issuer, Proxy, Resolver, wait};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);
/// The length of the outage.
const OUTAGE: Duration = Duration::from_secs(3);
/// The time in which a process that is told to stop has ended.
const GRACE: Duration = Duration::from_secs(10);

struct Platform {
    cluster: Cluster,
    /// In front of Postgres.
    proxy: Proxy,
    issuer: Issuer,
    resolver: Resolver,
}

impl Platform {
    async fn start(output: ErrorOutput) -> Self {
        // Small blocks, so that creates soon need the issuer again.
        let cluster = Cluster::builder().etcd(1).issuers(0).resolvers(0).alone().lease_ttl("2s");
        let cluster = cluster.issuer_args(["--block-min", "10", "--block-max", "10"]);
        let cluster = cluster.start().await.unwrap();
        let proxy = Proxy::start(cluster.postgres.addr()).await.unwrap();
        let issuer = cluster.issuer("mute").unwrap().error_output(output).env("RUST_LOG", "trace");
        let issuer = issuer.start().await.unwrap();
        let resolver = cluster.resolver("mute").unwrap().issuers([issuer.url()]).error_output(output);
        let resolver = resolver.database(&cluster.postgres.url_via(&proxy)).env("RUST_LOG", "trace");
        let resolver = resolver.start().await.unwrap();
        Self { cluster, proxy, issuer, resolver }
    }

    async fn creates(&self) -> bool {
        let created = self.resolver.api.try_create("https://example.com/a").await;
        created.is_ok_and(|answer| answer.status == 200)
    }

    /// Takes Postgres and etcd away while links are created.
    async fn suffer(&mut self) {
        self.cluster.etcd.stop_all().unwrap();
        self.proxy.refuse().await;
        self.proxy.reset_all();
        let began = Instant::now();
        wait::until(SOON, "the outage is over", async || {
            self.creates().await;
            began.elapsed() >= OUTAGE
        })
        .await
        .unwrap();
        self.proxy.accept().await.unwrap();
        self.cluster.etcd.start_all().await.unwrap();
    }
}

#[expect(clippy::print_stdout, reason = "the time belongs to the result of the test")]
async fn survives(output: ErrorOutput) {
    let mut platform = Platform::start(output).await;
    wait::until(SOON, "a first create", async || platform.creates().await).await.unwrap();
    platform.suffer().await;
    let healed = Instant::now();
    // More creates than a block has numbers, so that the issuer has to allocate.
    for _ in 0..30 {
        wait::until(SOON, "creates work again", async || platform.creates().await).await.unwrap();
    }
    println!("{output:?}: 30 creates {:?} after the outage", healed.elapsed());
    let Platform { mut issuer, mut resolver, .. } = platform;
    wait::until(SOON, "dropped lines are counted", async || {
        let dropped = (
            resolver.metric("resolver_log_lines_dropped_total").await,
            issuer.metric("issuer_log_lines_dropped_total").await,
        );
        resolver.api.follow("none").await.unwrap();
        matches!(dropped, (Some(resolver), Some(issuer)) if resolver > 0.0 && issuer > 0.0)
    })
    .await
    .unwrap();
    resolver.stop(GRACE).await.unwrap();
    issuer.stop(GRACE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_reader_is_gone_harms_nothing() {
    survives(ErrorOutput::Closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_on_a_full_disk_harms_nothing() {
    survives(ErrorOutput::Full).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_never_read_harms_nothing() {
    survives(ErrorOutput::Unread).await;
}
