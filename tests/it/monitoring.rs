//! Alerts, recording rules and dashboards: their tests pass, and each expression names metrics with
//! labels that real daemons have.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{Cluster, Daemon, Launch, Program, Prometheus, Scratch, wait};
use serde_json::Value;

use crate::k8s::in_venv;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s/monitoring");
const RUN_WITHIN: Duration = Duration::from_secs(180);
const SOON: Duration = Duration::from_secs(30);

/// Metrics that begin with an event which this platform does not have, each in the test of its own
/// noun: certificates (`tls`, `public_tls`), calls over gRPC (`grpc`), failed webhooks
/// (`webhooks`), errors of the database, whose labels are those of the error, and servers that an
/// installation may lack.
const ELSEWHERE: [&str; 7] = [
    "_certificate_expiry_timestamp_seconds",
    "resolver_grpc_request_duration_seconds",
    "resolver_database_errors_total",
    "resolver_database_nodes_away",
    "resolver_webhook",
    "server=\"replica\"",
    "server=\"clickhouse\"",
];

fn script(scratch: &Scratch, name: &str) -> Launch {
    Launch::new(scratch, name, in_venv("python")).arg(Path::new(FOLDER).join(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_dashboards_are_those_of_their_source_and_every_alert_has_runbook_and_tests() {
    let scratch = Scratch::new().unwrap();
    let checked = script(&scratch, "generate.py").arg("--check").run(RUN_WITHIN).await.unwrap();
    assert!(checked.status.success(), "{}{}", checked.stdout, checked.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_alert_fires_when_it_should_and_is_quiet_when_it_should_be() {
    let scratch = Scratch::new().unwrap();
    let promtool = || Launch::new(&scratch, "promtool", Program::Promtool.path().unwrap());
    let checked =
        promtool().args(["check", "rules"]).arg(Path::new(FOLDER).join("../chart/files/rules.yaml"));
    let checked = checked.run(RUN_WITHIN).await.unwrap();
    assert!(checked.status.success(), "{}{}", checked.stdout, checked.stderr);
    let files = std::fs::read_dir(Path::new(FOLDER).join("tests")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let tested = promtool().args(["test", "rules"]).args(files).run(RUN_WITHIN).await.unwrap();
    assert!(tested.status.success(), "{}{}", tested.stdout, tested.stderr);
}

/// A matcher of a label that no series has would make an alert that never fires.
#[tokio::test(flavor = "multi_thread")]
async fn every_expression_names_live_metrics_with_live_labels() {
    let cluster = Cluster::builder().etcd(1).issuers(2).resolvers(2).start().await.unwrap();
    let code = cluster.resolvers[0].api.create("https://example.com/").await.unwrap().code;
    for resolver in &cluster.resolvers {
        resolver.api.follow(&code).await.unwrap();
        resolver.api.create("https://example.com/other").await.unwrap();
        // The first use of each pool, and of a link that there is not.
        resolver.api.get("rest/v3/short-urls").await.unwrap();
        resolver.api.follow("zzzzzz").await.unwrap();
    }
    let resolvers = cluster.resolvers.iter().map(|resolver| -> &Daemon { resolver });
    let daemons: Vec<&Daemon> =
        cluster.issuers.iter().map(|issuer| -> &Daemon { issuer }).chain(resolvers).collect();
    let prometheus = Prometheus::start(&cluster.scratch, &daemons).await.unwrap();
    wait::until(SOON, "all are scraped", async || {
        prometheus.query("sum(up)").await.is_ok_and(|up| up == [daemons.len() as f64])
    })
    .await
    .unwrap();

    let listed = script(&cluster.scratch, "expressions.py").run(RUN_WITHIN).await.unwrap().success().unwrap();
    let mut selectors: Vec<(String, String)> = Vec::new();
    for line in listed.stdout.lines() {
        let expression: Value = serde_json::from_str(line).unwrap();
        let (origin, text) = (expression["origin"].as_str().unwrap(), expression["expr"].as_str().unwrap());
        prometheus.query(text).await.unwrap_or_else(|error| panic!("{origin}: {error:#}"));
        selectors.extend(selectors_of(text).into_iter().map(|selector| (selector, origin.to_owned())));
    }
    selectors.sort();
    selectors.dedup_by(|one, other| one.0 == other.0);
    assert!(selectors.len() > 100, "{selectors:?}");
    let mut dead = Vec::new();
    for (selector, origin) in selectors {
        if ELSEWHERE.iter().any(|name| selector.contains(name)) {
            continue;
        }
        let live = prometheus.query(&selector).await.unwrap_or_else(|error| panic!("{selector}: {error:#}"));
        if live.is_empty() {
            dead.push(format!("{origin}: {selector}"));
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

/// Returns the selectors of our metrics in an expression: a name, with its matchers if it has some
/// that select one series rather than exclude others.
fn selectors_of(expression: &str) -> Vec<String> {
    let mut selectors = Vec::new();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
    let mut rest = expression;
    while let Some(at) = rest.find(is_of_name) {
        let name_end = rest[at..].find(|letter| !is_of_name(letter)).map_or(rest.len(), |end| at + end);
        let (name, after) = (&rest[at..name_end], &rest[name_end..]);
        rest = after;
        if let Some(text) = after.strip_prefix('{') {
            let matchers = &text[..text.find('}').unwrap()];
            rest = &text[matchers.len()..];
            if is_ours(name) {
                selectors.push(format!("{name}{{{}}}", positive(matchers)));
            }
        } else if is_ours(name) {
            selectors.push(name.to_owned());
        } else if let Some(text) = after.strip_prefix('"') {
            rest = text;
        }
    }
    selectors
}

fn is_ours(name: &str) -> bool {
    ["resolver_", "issuer_", "process_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the matchers of labels that a healthy platform has: errors are absent from it.
fn positive(matchers: &str) -> String {
    let kept = matchers.split(',').filter(|matcher| {
        !(matcher.contains("!=") || matcher.contains("!~") || matcher.contains("status=~\"5"))
    });
    kept.collect::<Vec<_>>().join(",")
}
