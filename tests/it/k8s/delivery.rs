//! The chart and what is generated from it, checked by its own scripts, and the images' recipes.

use std::{path::Path, time::Duration};

use harness::{Finished, Launch, Scratch};

use super::{ROOT, tool};

/// checkov reads hundreds of policies for each render.
const RUN_WITHIN: Duration = Duration::from_secs(600);

async fn run(script: &str, args: &[&str]) -> Finished {
    let scratch = Scratch::new().unwrap();
    let python = Launch::new(&scratch, "script", tool("python"));
    let python = python.arg(Path::new(ROOT).join("k8s/chart").join(script)).args(args);
    // One user's defaults for helm must not change a render.
    let python = python.env("HELM_CONFIG_HOME", scratch.path()).env("HELM_CACHE_HOME", scratch.path());
    python.run(RUN_WITHIN).await.unwrap()
}

async fn expect_clean(script: &str, args: &[&str]) {
    let ended = run(script, args).await;
    assert!(ended.status.success(), "{script} {args:?}\n{}{}", ended.stdout, ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_generated_from_the_chart_is_up_to_date() {
    expect_clean("render", &["--check"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_and_kustomize_make_the_same_objects() {
    expect_clean("compare", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_valid_in_every_kubernetes_from_1_27_on() {
    expect_clean("check", &["lint", "kubernetes", "crds"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_values_are_refused_and_only_the_drawn_connections_are_allowed() {
    expect_clean("check", &["refused", "arrows", "names"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkov_finds_nothing_that_is_not_explained() {
    expect_clean("check", &["checkov"]).await;
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
