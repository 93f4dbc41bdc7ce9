//! Shlink's own clients work unchanged. The programs in `tests/sdk` drive a resolver through
//! Shlink's JavaScript SDK and through PyShlink, and check every response. `tests/run` installs
//! both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Cluster, Launch, ROOT, Resolver, Scratch};

use crate::k8s::in_venv;

const RUN_WITHIN: Duration = Duration::from_secs(120);
/// The folder in which `tests/run` installs the JavaScript SDK, relative to the root.
const SDK: &str = "target/sdk";

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_finds_all_that_it_asks_for() {
    let (scratch, resolver) = (Scratch::new().unwrap(), start().await);
    expect_all(node(&scratch, &resolver)).await;
}

/// Prepares a run of the JavaScript program. Each test has its own copy of the modules, because a
/// module finds packages only beside itself.
fn node(scratch: &Scratch, resolver: &Resolver) -> Launch {
    let installed = Path::new(ROOT).join(SDK);
    let folder = scratch.folder("sdk").unwrap();
    for file in std::fs::read_dir(Path::new(ROOT).join("tests/sdk/js")).unwrap() {
        let file = file.unwrap();
        if file.path().extension().is_some_and(|extension| extension == "mjs") {
            std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    let packages =
        installed.join("node_modules").canonicalize().expect("run tests/run, which installs the SDK");
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).unwrap();
    let node = Launch::new(scratch, "node", PathBuf::from("node")).arg(folder.join("drive.mjs"));
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
