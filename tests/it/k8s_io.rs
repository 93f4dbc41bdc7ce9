//! The redirects of kubernetes/k8s.io, which `resolver import` makes of a table.
//!
//! `k8s-io.csv` has those of its configuration (`apps/k8s-io/configmap-nginx.yaml`), and
//! `k8s-io-tested.csv` those that its tests (`apps/k8s-io/test.py`) still expect in another form.
//! Not made: pages (`get.k8s.io`, `?go-get=1`, `/_healthz`).

use std::path::Path;

use harness::{Answer, Api};
use serde_json::Value;

use crate::imports::{Operator, counts};

const K8S: &str = "https://github.com/kubernetes/kubernetes";
const LOGS: &str = "https://console.developers.google.com/storage/browser/kubernetes-jenkins/logs";
const FILES: &str = "https://storage.cloud.google.com/kubernetes-jenkins/logs";

/// Imports a table of `resolver/testdata`, and returns its counts.
async fn import(operator: &Operator, table: &str) -> [u64; 5] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../resolver/testdata").join(table);
    let finished =
        operator.command(&["import", "--from", "csv", "--json", &path.display().to_string()]).await;
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(told["complete"], true, "{told} {}", finished.stderr);
    counts(&told)
}

/// Asks as a proxy does whose visitor uses this scheme.
async fn ask(api: &Api, url: &str) -> (u16, String) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let request = api.http().get(format!("{}/{path}", api.url())).header("host", host);
    let answer = Answer::to(request.header("x-forwarded-proto", scheme)).await.unwrap();
    (answer.status, answer.header("location").unwrap_or_default().to_owned())
}

/// Asks for each path at both names of a host, with both schemes.
async fn expect_at(api: &Api, name: &str, status: u16, answers: &[(&str, String)]) {
    for host in [format!("{name}.k8s.io"), format!("{name}.kubernetes.io")] {
        for (path, location) in answers {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}{path}");
                assert_eq!(ask(api, &url).await, (status, location.clone()), "{url}");
            }
        }
    }
}

/// Returns the answers of a host that continues one URL with the path of each request.
fn continued(url: &str) -> Vec<(&'static str, String)> {
    let paths = ["", "/", "/4711", "/a/b/", "/a%20b?c=d"];
    paths.into_iter().map(|path| (path, format!("{url}{}", path.trim_start_matches('/')))).collect()
}

/// Returns the same with another URL for the root.
fn continued_below(root: &str, url: &str) -> Vec<(&'static str, String)> {
    let mut answers = continued(url);
    for (path, location) in &mut answers {
        if matches!(*path, "" | "/") {
            root.clone_into(location);
        }
    }
    answers
}

fn listed(answers: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    answers.iter().map(|(path, location)| (*path, (*location).to_owned())).collect()
}

async fn hosts_that_continue_one_url(api: &Api) {
    let blog = "https://kubernetes.io/blog/2023/08";
    let legacy = format!("{blog}/31/legacy-package-repository-deprecation/");
    let introduction = format!("{blog}/15/pkgs-k8s-io-introduction/");
    let packages = "https://prod-cdn.packages.k8s.io/repositories/isv:/kubernetes:/";
    for (names, answers) in [
        ("apt", continued_below(&legacy, "https://packages.cloud.google.com/apt/")),
        ("yum", continued_below(&legacy, "https://packages.cloud.google.com/yum/")),
        ("packages pkgs", continued_below(&introduction, packages)),
        ("blog", continued("https://kubernetes.io/blog/")),
        (
            "changelog",
            continued_below(
                &format!("{K8S}/blob/master/CHANGELOG/README.md"),
                &format!("{K8S}/releases/tag/"),
            ),
        ),
        ("code", continued(&format!("{K8S}/tree/master/"))),
        (
            "conduct",
            continued("https://github.com/kubernetes/community/tree/master/committee-code-of-conduct/"),
        ),
        ("feature features", continued("https://github.com/kubernetes/features/issues/")),
        ("issue issues", continued(&format!("{K8S}/issues/"))),
        ("kep", continued("https://github.com/kubernetes/enhancements/issues/")),
        ("pr prs", continued_below(&format!("{K8S}/pulls"), &format!("{K8S}/pull/"))),
    ] {
        for name in names.split(' ') {
            expect_at(api, name, 302, &answers).await;
        }
    }
    for (names, status, url) in [
        ("slack", 301, "https://communityinviter.com/apps/kubernetes/community"),
        ("submit-queue", 302, "https://prow.k8s.io/tide"),
        ("yt youtube", 302, "https://www.youtube.com/c/kubernetescommunity"),
    ] {
        for name in names.split(' ') {
            expect_at(api, name, status, &listed(&[("", url), ("/", url), ("/a/b", url)])).await;
        }
    }
}

async fn hosts_of_builds_whose_paths_have_forms(api: &Api) {
    let (cdn, ci) = ("https://cdn.dl.k8s.io", "https://storage.googleapis.com/k8s-release-dev/ci");
    for (name, answers) in [
        (
            "ci-test",
            vec![
                ("", LOGS.to_owned()),
                ("/e2e/", format!("{LOGS}/e2e")),
                ("/e2e/7/", format!("{LOGS}/e2e/7")),
                ("/e2e/7", format!("{FILES}/e2e/7")),
                ("/e2e/7/file", format!("{FILES}/e2e/7/file")),
            ],
        ),
        (
            "dl",
            vec![
                ("/", format!("{cdn}/")),
                ("/v1.2.3/a/b", format!("{cdn}/release/v1.2.3/a/b")),
                ("/v10.20.30-alpha.40/a", format!("{cdn}/release/v10.20.30-alpha.40/a")),
                ("/v1.2.3-beta.4/a", format!("{cdn}/release/v1.2.3-beta.4/a")),
                ("/v1.2.3-rc.4/", format!("{cdn}/release/v1.2.3-rc.4/")),
                ("/v1.2.3-gamma.4/a", format!("{cdn}/v1.2.3-gamma.4/a")),
                ("/v1.2.3", format!("{cdn}/v1.2.3")),
                ("/v8/engine", format!("{cdn}/v8/engine")),
                ("/release/stable.txt", format!("{cdn}/release/stable.txt")),
                ("/ci", format!("{ci}/")),
                ("/ci/v1/a?b=c", format!("{ci}/v1/a?b=c")),
                ("/ci/latest-1.txt", format!("{ci}/latest-1.txt")),
                (
                    "/apt/doc/apt-key.gpg",
                    "https://raw.githubusercontent.com/kubernetes/k8s.io/main/apt/doc/apt-key.gpg".to_owned(),
                ),
            ],
        ),
        (
            "sbom",
            vec![
                ("/v1.30.0/release", "https://dl.k8s.io/release/v1.30.0/kubernetes-release.spdx".to_owned()),
                (
                    "/v1.30.0/source.sha256",
                    "https://dl.k8s.io/release/v1.30.0/kubernetes-source.spdx.sha256".to_owned(),
                ),
            ],
        ),
    ] {
        expect_at(api, name, 302, &answers).await;
    }
}

async fn hosts_of_texts_whose_paths_have_forms(api: &Api) {
    let (git, docs) = ("https://github.com/kubernetes", "https://kubernetes.io/docs");
    let releases = "https://github.com/kubernetes/sig-release/tree/master/releases";
    for (names, answers) in [
        (
            "docs",
            vec![
                ("", format!("{docs}/")),
                ("/v1.30", docs.to_owned()),
                ("/v1.30/", format!("{docs}/")),
                ("/v1.30/a/b", format!("{docs}/a/b")),
                ("/v1/a", format!("{docs}/v1/a")),
                ("/a/b/", format!("{docs}/a/b/")),
            ],
        ),
        (
            "examples",
            vec![
                ("", format!("{git}/examples/tree/master/")),
                ("/v1.30", format!("{K8S}/tree/release-1.30/examples")),
                ("/v1.30/a/b", format!("{K8S}/tree/release-1.30/examples/a/b")),
                ("/a/b", format!("{git}/examples/tree/master/a/b")),
            ],
        ),
        (
            "git",
            vec![
                ("", format!("{git}/")),
                ("/repo", format!("{git}/repo/")),
                ("/repo/", format!("{git}/repo/")),
                ("/repo/a/b", format!("{git}/repo/blob/master/a/b")),
            ],
        ),
        (
            "releases rel",
            vec![
                ("", format!("{K8S}/releases")),
                ("/v1.30", format!("{releases}/release-1.30")),
                ("/v1.30/", format!("{releases}/release-1.30")),
                ("/v130", format!("{releases}/release-1.30")),
                ("/v1.30/meetings", format!("{releases}/release-1.30/links.md#meetings")),
                ("/v1.30/README.md", format!("{K8S}/tree/v1.30/README.md")),
                ("/master", format!("{K8S}/tree/master")),
                ("/4711/a/b", format!("{K8S}/tree/4711/a/b")),
            ],
        ),
    ] {
        for name in names.split(' ') {
            expect_at(api, name, 302, &answers).await;
        }
    }
}

async fn words_of_go(api: &Api) {
    let answers = listed(&[
        ("/bot-commands", "https://prow.k8s.io/command-help"),
        ("/owners", "https://www.kubernetes.dev/docs/guide/owners/"),
        ("/owners/auser", "https://cs.k8s.io/?q=auser&i=fosho&files=OWNERS&excludeFiles=vendor%2F&repos="),
        ("/owners/auser/", "https://cs.k8s.io/?q=auser&i=fosho&files=OWNERS&excludeFiles=vendor%2F&repos="),
        ("/contact", "https://github.com/kubernetes/community/tree/master/communication/"),
        ("/contact/sig-docs", "https://github.com/kubernetes/community/tree/master/sig-docs#contact"),
        ("/start", "https://kubernetes.io/docs/setup/"),
        ("/logo", "https://branding.cncf.io/projects/kubernetes/"),
    ]);
    expect_at(api, "go", 302, &answers).await;
    for path in ["/nothing", "/start/x", "/owners/a/b"] {
        assert_eq!(ask(api, &format!("https://go.k8s.io{path}")).await.0, 404, "{path}");
    }
}

async fn visitors_without_tls_are_sent_to_the_same_url_with_it(api: &Api) {
    for host in ["k8s.io", "kubernetes.io", "sigs.k8s.io", "sigs.kubernetes.io"] {
        for path in ["/", "/4711", "/a/b/?go-get=1", "//a"] {
            let (from, to) = (format!("http://{host}{path}"), format!("https://{host}{path}"));
            assert_eq!(ask(api, &from).await, (301, to));
        }
    }
    let sigs = "https://github.com/kubernetes-sigs";
    for (url, location) in [
        ("https://k8s.io", "https://kubernetes.io/".to_owned()),
        ("https://k8s.io/", "https://kubernetes.io/".to_owned()),
        ("https://k8s.io//4711", "https://kubernetes.io//4711".to_owned()),
        ("https://k8s.io/a/b?c=d", "https://kubernetes.io/a/b?c=d".to_owned()),
        ("https://x-k8s.io/a?b", "https://kubernetes.io".to_owned()),
        ("https://sigs.k8s.io", format!("{sigs}/")),
        ("https://sigs.kubernetes.io/repo", format!("{sigs}/repo")),
        ("https://sigs.k8s.io/repo/", format!("{sigs}/repo/")),
        ("https://sigs.k8s.io/repo/a/b", format!("{sigs}/repo/blob/master/a/b")),
    ] {
        assert_eq!(ask(api, url).await, (301, location), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_redirect_of_a_configuration_is_made_by_an_import() {
    let operator = Operator::new().await;
    assert_eq!(import(&operator, "k8s-io.csv").await, [103, 103, 0, 0, 0]);
    let resolver = operator.serve_with("second", &["--trusted-proxies", "127.0.0.0/8"]).await;
    let api = &resolver.api;
    hosts_that_continue_one_url(api).await;
    hosts_of_builds_whose_paths_have_forms(api).await;
    hosts_of_texts_whose_paths_have_forms(api).await;
    words_of_go(api).await;
    visitors_without_tls_are_sent_to_the_same_url_with_it(api).await;
}

/// What was imported first stays.
#[tokio::test(flavor = "multi_thread")]
async fn redirects_that_the_tests_expect_take_the_place_of_those_of_the_configuration() {
    let operator = Operator::new().await;
    assert_eq!(import(&operator, "k8s-io-tested.csv").await, [18, 18, 0, 0, 0]);
    assert_eq!(import(&operator, "k8s-io.csv").await, [103, 89, 8, 0, 6]);
    let resolver = operator.serve_with("second", &["--trusted-proxies", "127.0.0.0/8"]).await;
    let api = &resolver.api;
    let builds = "https://k8s-gubernator.appspot.com/build/kubernetes-jenkins/logs";
    let bucket = "https://storage.googleapis.com/kubernetes-release";
    let guide = "https://github.com/kubernetes/community/blob/master/contributors/guide/owners.md";
    for (name, answers) in [
        ("apt", continued("https://packages.cloud.google.com/apt/")),
        ("yum", continued("https://packages.cloud.google.com/yum/")),
        (
            "ci-test",
            vec![
                ("", LOGS.to_owned()),
                ("/e2e/", format!("{LOGS}/e2e")),
                ("/e2e/7/", format!("{builds}/e2e/7")),
                ("/e2e/7", format!("{builds}/e2e/7")),
                ("/e2e/7/file", format!("{FILES}/e2e/7/file")),
            ],
        ),
        (
            "dl",
            vec![
                ("/v1.2.3-rc.4/a", "https://cdn.dl.k8s.io/release/v1.2.3-rc.4/a".to_owned()),
                ("/v8/engine", format!("{bucket}/v8/engine")),
                ("/v1.2.3-gamma.4/a", format!("{bucket}/v1.2.3-gamma.4/a")),
            ],
        ),
        ("go", listed(&[("/owners", guide), ("/pr-dashboard", "https://gubernator.k8s.io/pr")])),
        ("pr-test", listed(&[("", "https://gubernator.k8s.io"), ("/7", "https://gubernator.k8s.io/pr/7")])),
    ] {
        expect_at(api, name, 302, &answers).await;
    }
}
