//! Shlink's own clients work unchanged. The programs in `tests/sdk` drive a resolver through
//! Shlink's JavaScript SDK and through PyShlink, and check every response. `tests/run` installs
//! both.

use std::path::Path;
use std::time::Duration;

use harness::{Cluster, Launch, ROOT, Resolver, Scratch, installed};

use crate::k8s::in_venv;

const RUN_WITHIN: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_finds_all_that_it_asks_for() {
    let (scratch, resolver) = (Scratch::new().unwrap(), start().await);
    expect_all(node(&scratch, &resolver)).await;
}

/// Prepares a run of the JavaScript program.
fn node(scratch: &Scratch, resolver: &Resolver) -> Launch {
    let node = installed::node(scratch, "sdk/js/drive.mjs", "sdk").unwrap();
    node.args([resolver.api.url(), resolver.api.key(), &resolver.addr().to_string(), "initial"])
}

#[tokio::test(flavor = "multi_thread")]
async fn pyshlink_finds_all_that_it_asks_for() {
    let (scratch, resolver) = (Scratch::new().unwrap(), start().await);
    let python = Launch::new(&scratch, "python", in_venv("python"));
    let python = python.arg(Path::new(ROOT).join("tests/sdk/python/drive.py"));
    expect_all(python.args([resolver.api.url(), resolver.api.key()])).await;
}

/// The statements for lists, tags and domains are assembled at run time, and Postgres interprets
/// them differently than SQLite.
#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_finds_all_of_it_on_postgres_too() {
    let (scratch, cluster) = (Scratch::new().unwrap(), Cluster::builder().start().await.unwrap());
    let resolver = &cluster.resolvers[0];
    expect_all(node(&scratch, resolver)).await;
}

async fn start() -> Resolver {
    Resolver::embedded().unwrap().start().await.unwrap()
}

async fn expect_all(program: Launch) {
    let finished = program.run(RUN_WITHIN).await.unwrap();
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("checks hold"), "{}", finished.stdout);
}
