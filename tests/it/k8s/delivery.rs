//! The chart, checked by its own tests, and the images' recipes.

use std::{path::Path, time::Duration};

use harness::{Launch, Scratch};

use super::{ROOT, tool};

/// checkov reads hundreds of policies for each render.
const RUN_WITHIN: Duration = Duration::from_secs(600);

/// Runs the chart's tests that pytest selects by these arguments.
async fn pass(selection: &[&str]) {
    let scratch = Scratch::new().unwrap();
    let python = Launch::new(&scratch, "pytest", tool("python"));
    // The folder is part of the repository, and stays free of caches.
    let python = python.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(selection);
    let python = python.arg(Path::new(ROOT).join("k8s/chart/tests"));
    // One user's defaults for helm must not change a render.
    let python = python.env("HELM_CONFIG_HOME", scratch.path()).env("HELM_CACHE_HOME", scratch.path());
    let ended = python.run(RUN_WITHIN).await.unwrap();
    assert!(ended.status.success(), "{selection:?}\n{}{}", ended.stdout, ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_charts_templates_and_values_pass_their_tests() {
    pass(&["-k", "not schemas"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_valid_in_the_oldest_and_the_newest_kubernetes() {
    pass(&["-k", "schemas and not checkov"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkov_finds_nothing_that_is_not_explained() {
    pass(&["-k", "checkov"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hadolint_finds_nothing_in_the_images() {
    let scratch = Scratch::new().unwrap();
    let images = Path::new(ROOT).join("k8s/images");
    let hadolint = Launch::new(&scratch, "hadolint", tool("hadolint"));
    let files = ["issuer.Containerfile", "resolver.Containerfile"].map(|file| images.join(file));
    let checked = hadolint.args(files).run(RUN_WITHIN).await.unwrap();
    assert!(checked.status.success(), "{}{}", checked.stdout, checked.stderr);
}
