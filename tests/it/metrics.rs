//! The metrics pages pass promtool's check and reveal no links.

use std::time::Duration;

use harness::{Cluster, Daemon, Launch, Program, Resolver, Scratch, wait};

const CHECK_WITHIN: Duration = Duration::from_secs(30);

const LONG_URL: &str = "https://example.com/secret-target";

#[tokio::test(flavor = "multi_thread")]
async fn promtool_finds_no_fault_with_the_pages_of_leader_follower_and_resolver() {
    let cluster = Cluster::builder().issuers(2).start().await.unwrap();
    let code = make_traffic(&cluster.resolvers[0]).await;
    expect_clean(&cluster.scratch, &cluster.resolvers[0], "resolver_", &code).await;
    for issuer in &cluster.issuers {
        expect_clean(&cluster.scratch, issuer, "issuer_", &code).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_finds_no_fault_with_the_page_of_an_embedded_resolver() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let code = make_traffic(&resolver).await;
    let scratch = Scratch::new().unwrap();
    // The embedded issuer may add its own metrics.
    expect_clean(&scratch, &resolver, "", &code).await;
}

/// Causes each kind of response at least once, so that no metric is missing from the page. Returns
/// the code of the link.
async fn make_traffic(resolver: &Resolver) -> String {
    let code = resolver.api.create(LONG_URL).await.unwrap().code;
    for _ in 0..3 {
        assert_eq!(resolver.api.follow(&code).await.unwrap().0, 302);
    }
    assert_eq!(resolver.api.get("no-such-code").await.unwrap().status, 404);
    assert_eq!(resolver.api.try_create("not a URL").await.unwrap().status, 400);
    assert_eq!(resolver.api.get("rest/v3/short-urls/none").await.unwrap().status, 401);
    code
}

async fn expect_clean(scratch: &Scratch, daemon: &Daemon, prefix: &str, code: &str) {
    let page = daemon.metrics().await.unwrap();
    let file = scratch.file("page", &page).unwrap();
    let promtool = Launch::new(scratch, "promtool", Program::Promtool.path().unwrap());
    let checked = promtool.args(["check", "metrics"]).stdin(file).run(CHECK_WITHIN).await.unwrap();
    assert!(checked.status.success(), "{checked:?}\n{page}");
    assert_eq!((checked.stdout.as_str(), checked.stderr.as_str()), ("", ""), "{page}");

    let mut names = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let known = ["issuer_", "resolver_", "process_"];
    let stranger = names.find(|name| !known.iter().any(|prefix| name.starts_with(prefix)));
    assert_eq!(stranger, None, "every metric is one of ours, or of every process");
    assert!(page.contains("\nprocess_cpu_seconds_total ") && page.contains("_build_info{version="), "{page}");
    assert!(page.contains(&format!("# TYPE {prefix}")), "{page}");
    assert!(
        !page.contains(&format!("\"{code}\"")) && !page.contains(LONG_URL),
        "a link is on the page:\n{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_tells_how_long_etcd_has_not_answered() {
    let mut cluster = Cluster::builder().etcd(1).issuers(2).resolvers(0).start().await.unwrap();
    let ages = async |issuers: &[harness::Issuer]| {
        let mut ages = Vec::new();
        for issuer in issuers {
            ages.push(issuer.metric("issuer_last_success_age_seconds").await.unwrap_or(f64::NAN));
        }
        ages
    };
    let before = ages(&cluster.issuers).await;
    assert!(before.iter().all(|age| *age < 3.0), "leader and follower ask etcd: {before:?}");
    cluster.etcd.stop_all().unwrap();
    let is_seen = async || ages(&cluster.issuers).await.iter().all(|age| *age > 4.0);
    wait::until(CHECK_WITHIN, "both have missed etcd", is_seen).await.unwrap();
}
