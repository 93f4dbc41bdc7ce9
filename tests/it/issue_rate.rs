//! The rate at which numbers are issued, as a real Prometheus computes it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use harness::{Cluster, Prometheus, wait};
use proto::issuer::v1::{AllocateBlockRequest, NamespaceSpec, RegisterRequest, issuer_client::IssuerClient};
use tokio::time::{sleep, timeout};
use tonic::transport::{Channel, Endpoint};

const SOON: Duration = Duration::from_secs(30);
/// Two scrapes and a little more.
const SCRAPED: Duration = Duration::from_millis(2_500);
/// How long each leader issues numbers.
const TERM: Duration = Duration::from_secs(6);
const PAUSE: Duration = Duration::from_millis(20);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const LEN: u64 = 1_000;
const FAIL_OVERS: f64 = 3.0;

/// Clients of all issuers, which ask for blocks, and count the numbers that they were given.
struct Client {
    issuers: Vec<IssuerClient<Channel>>,
    issued: AtomicU64,
    holders: AtomicU64,
    ended: AtomicBool,
}

impl Client {
    fn new(cluster: &Cluster) -> Arc<Self> {
        let client = |url: String| {
            let endpoint = Endpoint::from_shared(url).unwrap().connect_timeout(ANSWER_WITHIN);
            IssuerClient::new(endpoint.connect_lazy())
        };
        let issuers = cluster.issuers.iter().map(|issuer| client(issuer.url())).collect();
        let (issued, holders) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { issuers, issued, holders, ended: AtomicBool::new(false) })
    }

    async fn run(self: Arc<Self>) {
        while !self.ended.load(Relaxed) {
            let holder = format!("holder-{}", self.holders.fetch_add(1, Relaxed));
            self.take_block(&holder).await;
            sleep(PAUSE).await;
        }
    }

    /// Asks one issuer after the other until one has given a block to a new holder. A request whose
    /// answer was lost is repeated as it was, and has the same block.
    async fn take_block(&self, holder: &str) {
        for issuer in self.issuers.iter().cycle() {
            if let Ok(Some(numbers)) = timeout(ANSWER_WITHIN, ask(issuer.clone(), holder)).await {
                self.issued.fetch_add(numbers, Relaxed);
                return;
            }
            sleep(PAUSE).await;
        }
    }
}

async fn ask(mut issuer: IssuerClient<Channel>, holder: &str) -> Option<u64> {
    let register = RegisterRequest {
        holder: holder.to_owned(),
        instance: "start".to_owned(),
        namespaces: vec![NamespaceSpec { name: "web".to_owned(), capacity: 1 << 40 }],
        reserved: false,
    };
    let incarnation = issuer.register(register).await.ok()?.into_inner().incarnation;
    let request = AllocateBlockRequest {
        holder: holder.to_owned(),
        incarnation,
        seq: 1,
        namespace: "web".to_owned(),
        wanted_len: LEN,
        store_epoch: "test:1".to_owned(),
    };
    let answered = issuer.allocate_block(request.clone()).await.ok()?.into_inner();
    // Sometimes a client does not see an answer.
    if incarnation.is_multiple_of(2) || holder.ends_with('7') {
        issuer.allocate_block(request).await.ok()?;
    }
    Some(answered.block?.len)
}

/// Pauses the leader until another one leads, and returns that one. `others` stand still meanwhile,
/// so that it is not one of them.
async fn fail_over(cluster: &mut Cluster, leader: usize, others: &[usize]) -> usize {
    for place in [&[leader], others].concat() {
        cluster.issuers[place].process.pause().await.unwrap();
    }
    let next = wait::until_some(SOON, "another issuer leads", async || {
        for (place, issuer) in cluster.issuers.iter().enumerate() {
            if place != leader && !others.contains(&place) && issuer.says_it_leads().await {
                return Some(place);
            }
        }
        None
    });
    let next = next.await.unwrap();
    for place in [&[leader], others].concat() {
        cluster.issuers[place].process.resume().unwrap();
    }
    cluster.wait_leader(SOON).await.unwrap();
    next
}

/// Adds what `increase` says of each issuer at its last scrape. At any later time Prometheus adds
/// what would have come since, by its estimate, and that is up to an interval's worth.
async fn increase_at_last_scrapes(cluster: &Cluster, prometheus: &Prometheus) -> f64 {
    let mut sum = 0.0;
    for issuer in &cluster.issuers {
        let instance = issuer.admin_url().trim_start_matches("http://").to_owned();
        let series = format!("issuer_numbers_issued_total{{instance=\"{instance}\"}}");
        let at = prometheus.query(&format!("timestamp({series})")).await.unwrap()[0];
        sum += prometheus.query(&format!("increase({series}[10m] @ {at})")).await.unwrap()[0];
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_counts_what_a_client_was_given_while_leaders_come_and_return() {
    let mut cluster = Cluster::builder().etcd(1).issuers(3).resolvers(0).start().await.unwrap();
    let first = cluster.wait_leader(SOON).await.unwrap();
    let daemons: Vec<_> = cluster.issuers.iter().map(|issuer| &**issuer).collect();
    let prometheus = Prometheus::start(&cluster.scratch, &daemons).await.unwrap();
    let is_scraped =
        async || prometheus.query("issuer_numbers_issued_total").await.is_ok_and(|all| all.len() == 3);
    wait::until(SOON, "all issuers are scraped", is_scraped).await.unwrap();
    sleep(SCRAPED).await;

    let client = Client::new(&cluster);
    let running = tokio::spawn(Arc::clone(&client).run());
    sleep(TERM).await;
    let second = fail_over(&mut cluster, first, &[]).await;
    sleep(TERM).await;
    // Back to the first one, and to the second one.
    let third = 3 - first - second;
    assert_eq!(fail_over(&mut cluster, second, &[third]).await, first);
    sleep(TERM).await;
    assert_eq!(fail_over(&mut cluster, first, &[third]).await, second);
    sleep(TERM).await;
    client.ended.store(true, Relaxed);
    running.await.unwrap();

    let issued = client.issued.load(Relaxed) as f64;
    // No number is counted twice. A leader that is paused between a commit and its answer, and is
    // deposed meanwhile, does not learn of the commit and does not count its one block; the next
    // leader answers with it as with any that was issued before.
    let counted = issued - FAIL_OVERS * LEN as f64..=issued;
    let expected = format!("{counted:?} numbers are counted, each by the leader that issued it");
    // The sum may be in this range before the last numbers are scraped, and the scrape of a busy
    // machine may be late.
    sleep(SCRAPED).await;
    let is_counted = async || {
        let sum = prometheus.query("sum(issuer_numbers_issued_total)").await;
        sum.is_ok_and(|sum| sum.len() == 1 && counted.contains(&sum[0]))
    };
    wait::until(SOON, &expected, is_counted).await.unwrap();
    let increase = increase_at_last_scrapes(&cluster, &prometheus).await;
    assert!(issued > 150.0 * LEN as f64, "{issued}");
    assert!(counted.contains(&increase.round()), "Prometheus sees {increase} more, not {counted:?}");
    for gauge in ["issuer_holders_alive", "issuer_namespace_allocated"] {
        let series = prometheus.query(gauge).await.unwrap();
        assert_eq!(series.len(), 1, "only the leader has {gauge}: {series:?}");
    }
    assert_eq!(prometheus.query("sum(issuer_leader)").await.unwrap(), [1.0]);
}
