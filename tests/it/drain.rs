//! SIGTERM to a resolver under load, as in a rolling update.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use harness::{Answer, Api, Cluster, Connection, Created, Load, Resolver, checks, connection, load, wait};
use tokio::task::JoinSet;

const CLIENTS: usize = 32;
const STOP_WITHIN: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(30);
/// The drain delay with a margin for a busy machine; less than the delay and the deadline for open
/// connections together.
const IDLE_ENDED_WITHIN: Duration = Duration::from_secs(12);

/// The block size: so large that no resolver needs a second block during the test. So returned
/// numbers stay free and can be counted.
const BLOCK: u64 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_under_load_cuts_no_request_and_gives_the_unused_numbers_back() {
    let block = BLOCK.to_string();
    let cluster = Cluster::builder().resolvers(2).drain_delay("1s");
    let cluster = cluster.issuer_args(["--block-min", &block, "--block-max", &block]);
    let mut cluster = cluster.start().await.unwrap();
    let balancer = Balancer::new(&cluster);
    let watching = tokio::spawn(balancer.clone().watch_readiness());
    let mut clients: JoinSet<anyhow::Result<()>> =
        (0..CLIENTS).map(|_| balancer.clone().be_a_client()).collect();
    wait::until(SOON, "the first resolver is busy", async || balancer.on_first() >= 20 * CLIENTS)
        .await
        .unwrap();

    let stopped = cluster.resolvers[0].stop(STOP_WITHIN).await;
    let moved = balancer.other_serves_everybody().await;
    balancer.is_over.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.unwrap().unwrap();
    }
    // Checked after the clients, because a failed request explains more.
    stopped.unwrap();
    moved.unwrap();
    watching.await.unwrap();

    let status = cluster.status().await.unwrap();
    checks::account_balances(&status).unwrap();
    let numbers = status.only_namespace().unwrap();
    let (gone, other) = (status.holder("resolver-0").unwrap(), status.holder("resolver-1").unwrap());
    if gone.blocks == 1 && !cluster.postgres.nodes().is_empty() {
        // Numbers that it kept for other buckets were too many gaps for a return.
        return assert_eq!(numbers.burned, 0, "{status:?}");
    }
    assert_eq!(gone.blocks, 0, "{status:?}");
    assert!(numbers.free > 0, "nothing came back: {status:?}");
    assert!(other.blocks > 0, "{status:?}");
    // The other resolver may hold the returned rest, which is shorter than a block.
    assert!(numbers.open > 0 && numbers.open <= other.blocks * BLOCK, "open to others as well: {status:?}");
    assert_eq!(numbers.leaked, 0, "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_resolvers_have_stopped_every_used_number_has_its_link_and_none_is_open() {
    let cluster = Cluster::builder().resolvers(2).drain_delay("100ms");
    // No block has more gaps than a return may list.
    let cluster = cluster.issuer_args(["--block-min", "64", "--block-max", "64"]);
    let mut cluster = cluster.start().await.unwrap();
    let links = Load::on(&cluster.resolvers).creates(2_000).run().await.unwrap();
    for resolver in &mut cluster.resolvers {
        resolver.stop(STOP_WITHIN).await.unwrap();
    }

    let status = cluster.status().await.unwrap();
    checks::account_balances(&status).unwrap();
    checks::used_numbers_have_links(&status, &cluster.postgres).await.unwrap();
    assert_eq!(status.only_namespace().unwrap().used, links.len() as u64, "{status:?}");
    // The returned numbers are allocated again, and no existing link is overwritten.
    for resolver in &mut cluster.resolvers {
        resolver.restart().await.unwrap();
    }
    let more = Load::on(&cluster.resolvers).creates(1_000).run().await.unwrap();
    let links = [links, more].concat();
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_only_ask_for_known_links_are_asked_to_leave_and_idle_ones_end() {
    let mut resolver = Resolver::embedded().unwrap().drain_delay("5s").start().await.unwrap();
    let long_url = load::next_long_url();
    let path = format!("/{}", resolver.api.create(&long_url).await.unwrap().code);
    resolver.api.follow(&path[1..]).await.unwrap();
    let mut asking = Connection::open(resolver.addr()).await.unwrap();
    let mut idle = Connection::open(resolver.addr()).await.unwrap();
    for connection in [&mut asking, &mut idle] {
        let answer = connection.get(&path).await.unwrap();
        expect_redirect(&answer, &long_url).unwrap();
        assert!(!connection::is_last(&answer));
    }
    resolver.process.terminate().unwrap();
    wait::until(SOON, "the resolver is not ready any more", async || !resolver.is_ready().await)
        .await
        .unwrap();
    let answer = asking.get(&path).await.unwrap();
    expect_redirect(&answer, &long_url).unwrap();
    assert!(connection::is_last(&answer), "{answer:?}");
    // The process ends with the drain delay. An idle connection that is not closed would hold it
    // for another ten seconds.
    resolver.process.wait_exit(IDLE_ENDED_WITHIN).await.unwrap();
    idle.get(&path).await.unwrap_err();
}

/// A load balancer's view: two servers, and whether the first one may still be used.
#[derive(Clone)]
struct Balancer {
    servers: [SocketAddr; 2],
    api: Api,
    readiness: String,
    is_first_leaving: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    served: [Arc<AtomicUsize>; 2],
    /// The number of clients that moved to the second server.
    moved: Arc<AtomicUsize>,
}

impl Balancer {
    fn new(cluster: &Cluster) -> Self {
        let [first, second] = &cluster.resolvers[..] else { panic!("two resolvers are needed") };
        Self {
            servers: [first.addr(), second.addr()],
            api: first.api.clone(),
            readiness: format!("{}/readyz", first.admin_url()),
            is_first_leaving: Arc::default(),
            is_over: Arc::default(),
            served: Default::default(),
            moved: Arc::default(),
        }
    }

    fn on_first(&self) -> usize {
        self.served[0].load(Ordering::Relaxed)
    }

    /// Waits until every client has moved to the second server and is served there.
    async fn other_serves_everybody(&self) -> anyhow::Result<()> {
        wait::until(SOON, "every client is served by the second resolver", async || {
            let moved = self.moved.load(Ordering::Relaxed);
            moved == CLIENTS && self.served[1].load(Ordering::Relaxed) >= 10 * CLIENTS
        })
        .await
    }

    /// Takes the first server out of use once its readiness probe fails.
    async fn watch_readiness(self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let probe = Answer::to(self.api.http().get(&self.readiness)).await;
            if !probe.is_ok_and(|answer| answer.status == 200) {
                self.is_first_leaving.store(true, Ordering::Relaxed);
                return;
            }
            tokio::time::sleep(wait::POLL_INTERVAL).await;
        }
    }

    /// Runs a closed loop of a create and a redirect on one connection, until the test is over. Any
    /// failed request ends it with an error.
    async fn be_a_client(self) -> anyhow::Result<()> {
        let mut place = 0;
        let mut connection = Connection::open(self.servers[place]).await?;
        while !self.is_over.load(Ordering::Relaxed) {
            let must_leave = self.create_and_follow(&mut connection, place).await?;
            let must_leave = must_leave || (place == 0 && self.is_first_leaving.load(Ordering::Relaxed));
            if must_leave {
                if place == 0 {
                    self.moved.fetch_add(1, Ordering::Relaxed);
                }
                place = 1;
                connection = Connection::open(self.servers[place]).await?;
            }
        }
        ensure!(place == 1, "this client never left the resolver that was stopped");
        Ok(())
    }

    /// Creates a link and follows it. Returns whether the server asks to close the connection; if
    /// it does so after the create, the link is followed on the other server.
    async fn create_and_follow(&self, connection: &mut Connection, place: usize) -> anyhow::Result<bool> {
        let long_url = load::next_long_url();
        let created = connection.create(self.api.key(), &long_url).await;
        let created = created.with_context(|| format!("on server {place}"))?;
        ensure!(created.status == 200, "on server {place}: {created:?}");
        self.served[place].fetch_add(1, Ordering::Relaxed);
        let path = format!("/{}", Created::read(&created)?.code);
        if connection::is_last(&created) {
            let followed = Connection::open(self.servers[1]).await?.get(&path).await?;
            return expect_redirect(&followed, &long_url).map(|()| true);
        }
        let followed = connection.get(&path).await.with_context(|| format!("on server {place}"))?;
        self.served[place].fetch_add(1, Ordering::Relaxed);
        expect_redirect(&followed, &long_url)?;
        Ok(connection::is_last(&followed))
    }
}

fn expect_redirect(answer: &Answer, long_url: &str) -> anyhow::Result<()> {
    ensure!(answer.status == 302 && answer.header("location") == Some(long_url), "{long_url}: {answer:?}");
    Ok(())
}
