//! When a resolver is ready for the first time: with numbers in hand, or after its deadline, and it
//! does not follow the issuer later.

use std::time::Duration;

use harness::{Answer, Cluster, Proxy, ResolverBuilder, http, wait};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);

/// An issuer that resolvers reach through a proxy.
struct Platform {
    cluster: Cluster,
    proxy: Proxy,
    /// A link, made before the issuer goes away.
    code: String,
}

impl Platform {
    async fn start() -> Self {
        // Resolvers ask the issuer every two seconds.
        let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().holder_ttl("6s");
        let cluster = cluster.start().await.unwrap();
        let code = cluster.resolvers[0].api.create("https://example.com/").await.unwrap().code;
        let proxy = Proxy::start(cluster.issuers[0].listen()).await.unwrap();
        Self { cluster, proxy, code }
    }

    async fn away(&self) {
        self.proxy.refuse().await;
        self.proxy.reset_all();
    }

    fn resolver(&self, holder: &str) -> ResolverBuilder {
        self.cluster.resolver(holder).unwrap().issuers([self.proxy.url()])
    }

    /// Waits until a resolver that starts redirects.
    async fn redirects(&self, url: &str) {
        let http = http::client().unwrap();
        let is_served = async || {
            let answer = Answer::to(http.get(format!("{url}/{}", self.code))).await;
            answer.is_ok_and(|answer| answer.status == 302)
        };
        wait::until(SOON, "it redirects", is_served).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_is_ready_once_it_has_numbers_and_stays_so_without_an_issuer() {
    let platform = Platform::start().await;
    platform.away().await;
    let builder = platform.resolver("late").args(["--start-deadline", "60s"]);
    let url = format!("http://{}", builder.listen());
    let issuer_comes_back = async {
        platform.redirects(&url).await;
        platform.proxy.accept().await.unwrap();
    };
    let (resolver, ()) = tokio::join!(builder.start(), issuer_comes_back);
    let resolver = resolver.unwrap();
    assert!(resolver.numbers_in_hand().await > Some(0), "ready before it had numbers");

    platform.away().await;
    let age = async || {
        resolver.metric_where("resolver_last_success_age_seconds", "server=\"issuer\"").await.unwrap()
    };
    wait::until(SOON, "the issuer has been away for a while", async || age().await > 8.0).await.unwrap();
    assert!(resolver.is_ready().await);
    let failed = |reason| resolver.metric_where("resolver_refills_failed_total", reason);
    assert!(failed("reason=\"unanswered\"").await > Some(0.0));
    assert_eq!(failed("reason=\"refused\"").await, Some(0.0));
    resolver.api.create("https://example.com/2").await.unwrap();
    platform.proxy.accept().await.unwrap();
    wait::until(SOON, "the issuer answers", async || age().await < 8.0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_issuer_a_resolver_is_ready_at_its_deadline_and_one_for_visitors_at_once() {
    let platform = Platform::start().await;
    platform.away().await;
    let deadline = Duration::from_secs(6);
    let builder = platform.resolver("alone").args(["--start-deadline", "6s"]);
    let url = format!("http://{}", builder.listen());
    let begun = Instant::now();
    let (resolver, ()) = tokio::join!(builder.start(), platform.redirects(&url));
    let resolver = resolver.unwrap();
    assert!(begun.elapsed() >= deadline, "ready without numbers after {:?}", begun.elapsed());
    assert_eq!(resolver.numbers_in_hand().await, Some(0));
    assert!(resolver.process.stderr().contains("ready without numbers"), "{}", resolver.process.tail());

    let visitors = platform.cluster.resolver("visitors").unwrap().redirects_only();
    let visitors = visitors.args(["--start-deadline", "600s"]).start().await.unwrap();
    assert_eq!(visitors.metric("resolver_numbers_in_hand").await, None);
}
