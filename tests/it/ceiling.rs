//! Codes that were never minted cost no query while the resolver's copy of the ceiling is fresh.

use std::time::Duration;

use harness::{Cluster, Load, Resolver, checks, wait};

const SOON: Duration = Duration::from_secs(30);
/// The number of codes in one scan. They are arbitrary codes of six characters, and nearly all of
/// their numbers are above the ceiling.
const SCAN: usize = 200;

/// Follows codes that were never minted. Returns how many of them the ceiling ruled out, and how
/// many database reads the others cost.
async fn scan(resolver: &Resolver, round: usize) -> (f64, f64) {
    let before = counts(resolver).await;
    for n in 0..SCAN {
        let code = format!("{round}z{n:04}");
        assert_eq!(resolver.api.follow(&code).await.unwrap().0, 404, "{code}");
    }
    let after = counts(resolver).await;
    (after.0 - before.0, after.1 - before.1)
}

async fn counts(resolver: &Resolver) -> (f64, f64) {
    let ruled_out = resolver.metric("resolver_codes_ruled_out_total").await.unwrap_or_default();
    (ruled_out, resolver.metric("resolver_link_reads_total").await.unwrap_or_default())
}

async fn is_ruled_out(resolver: &Resolver, code: &str) -> bool {
    let before = counts(resolver).await.0;
    resolver.api.follow(code).await.unwrap();
    counts(resolver).await.0 > before
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_costs_no_query_above_the_ceiling_and_the_ceiling_is_not_believed_when_it_is_stale() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).alone().holder_ttl("2s");
    let mut cluster = cluster.start().await.unwrap();
    let links = Load::on(&cluster.resolvers).creates(500).run().await.unwrap();
    let resolver = &cluster.resolvers[0];
    // One code in 64 is below the ceiling, whatever the code key, so each attempt takes another
    // code.
    let mut codes = (0..).map(|n| format!("y{n:05}"));
    let above = wait::until_some(SOON, "the first beat is answered", async || {
        let code = codes.next()?;
        is_ruled_out(resolver, &code).await.then_some(code)
    });
    let above = above.await.unwrap();

    let (ruled_out, reads) = scan(resolver, 1).await;
    assert!(ruled_out >= SCAN as f64 * 0.9, "{ruled_out} of {SCAN}");
    assert!(reads <= SCAN as f64 * 0.1, "{reads} reads");
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();

    cluster.issuers[0].process.kill_now().unwrap();
    let resolver = &cluster.resolvers[0];
    wait::until(SOON, "the ceiling is stale", async || !is_ruled_out(resolver, &above).await).await.unwrap();
    let (ruled_out, reads) = scan(resolver, 2).await;
    assert_eq!((ruled_out, reads), (0.0, SCAN as f64), "without the issuer's word only the database knows");
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();

    cluster.issuers[0].restart().await.unwrap();
    let resolver = &cluster.resolvers[0];
    wait::until(SOON, "it is fresh again", async || is_ruled_out(resolver, &above).await).await.unwrap();
}
