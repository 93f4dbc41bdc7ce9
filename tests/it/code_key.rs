//! The code key is fixed for the life of a database. A resolver with another key refuses to start
//! and states the reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Cluster, Finished, secret};

const END_WITHIN: Duration = Duration::from_secs(30);

/// The exit code for bad configuration.
const EX_USAGE: i32 = 64;

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_with_another_code_key_than_the_databases_refuses_to_start_and_says_why() {
    let mut cluster = Cluster::builder().start().await.unwrap();
    let link = cluster.resolvers[0].api.create("https://example.com/first").await.unwrap();

    let other_key = secret::random_hex().unwrap();
    let file = cluster.scratch.secret("other.key", &other_key).unwrap();
    let finished = start_with(&cluster, &file).await;
    let reason = expect_bad_configuration(&finished);
    assert!(reason.contains("database belongs to another"), "it must say why: {reason}");
    assert_no_key_is_shown(&finished, &[&other_key, &own_key(&cluster)]);

    // The refused resolver has changed nothing: the first one still serves, and another with the
    // right key can start.
    cluster.start_resolver("resolver-1").await.unwrap();
    for resolver in &cluster.resolvers {
        let followed = resolver.api.follow(&link.code).await.unwrap();
        assert_eq!(followed, (302, Some("https://example.com/first".to_owned())));
        resolver.api.create("https://example.com/second").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_key_file_that_is_missing_or_malformed_is_named_with_its_flag() {
    let cluster = Cluster::builder().resolvers(0).start().await.unwrap();
    let missing = cluster.scratch.path().join("nowhere.key");
    let reason = expect_bad_configuration(&start_with(&cluster, &missing).await);
    assert!(reason.contains("nowhere.key"), "{reason}");

    let right = own_key(&cluster);
    let odd = format!("{}g", &right[..63]);
    for malformed in ["", "short", &right[..62], &odd, &format!("{right}00")] {
        let file: PathBuf = cluster.scratch.secret("malformed.key", malformed).unwrap();
        let finished = start_with(&cluster, &file).await;
        let reason = expect_bad_configuration(&finished);
        assert!(reason.contains("malformed.key"), "{malformed:?}: {reason}");
        assert_no_key_is_shown(&finished, &[&right[..62]]);
    }
}

async fn start_with(cluster: &Cluster, code_key_file: &Path) -> Finished {
    let resolver = cluster.resolver("refused").unwrap().code_key_file(code_key_file);
    resolver.run_to_its_end(END_WITHIN).await.unwrap()
}

/// Returns the error line that names the flag.
fn expect_bad_configuration(finished: &Finished) -> String {
    assert_eq!(finished.code(), Some(EX_USAGE), "{finished:?}");
    let line = finished.stderr.lines().find(|line| line.contains("--code-key-file"));
    line.unwrap_or_else(|| panic!("no line names the flag: {finished:?}")).to_owned()
}

/// Asserts that no key was printed. Not even a wrong one may be: it may differ from the right one
/// by a typing mistake.
fn assert_no_key_is_shown(finished: &Finished, keys: &[&str]) {
    for key in keys {
        assert!(
            !finished.stdout.contains(key) && !finished.stderr.contains(key),
            "a key is shown: {finished:?}"
        );
    }
}

fn own_key(cluster: &Cluster) -> String {
    std::fs::read_to_string(&cluster.code_key_file).unwrap()
}
