//! Names that nothing has: parameters of calls and variables of the environment. A misspelled one
//! is told with the name that was probably meant.

use std::time::Duration;

use harness::{Launch, Resolver, Scratch, binaries};
use reqwest::Method;
use serde_json::Value;

use crate::rest_calls::{call, expect_problem};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelled_parameter_is_refused_and_what_clients_of_shlink_send_is_not() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let api = &resolver.api;
    for (method, path, name, meant) in [
        (Method::GET, "stats?code=summer", "code", "did you mean shortCode?"),
        (Method::GET, "stats?shortCode=summer&excludeBot=1", "excludeBot", "did you mean excludeBots?"),
        (Method::GET, "short-urls?tags=news", "tags", "did you mean tags[]?"),
        (Method::GET, "short-urls?searchterm=x", "searchterm", "did you mean searchTerm?"),
        (Method::GET, "short-urls/x/visits?from=2026-01-01", "from", "startDate"),
        (Method::GET, "short-urls/x?domian=a.example", "domian", "did you mean domain?"),
        (Method::DELETE, "short-urls/x?domian=a.example", "domian", "did you mean domain?"),
        (Method::PATCH, "short-urls/x?colour=red", "colour", "domain"),
        (Method::POST, "short-urls?longUrl=x", "longUrl", "this call has no parameters"),
        (Method::POST, "short-urls/bulk?dryRun=true", "dryRun", "this call has no parameters"),
        (Method::DELETE, "tags?tag=x", "tag", "did you mean tags[]?"),
        (Method::GET, "audit?befor=7", "befor", "did you mean before?"),
        (Method::GET, "webhooks?page=2", "page", "this call has no parameters"),
    ] {
        let answer = call(api, method.clone(), path, None).await;
        expect_problem(&answer, 400, "invalid-data");
        let problem: Value = answer.json().unwrap();
        let reason = problem["expected"][name].as_str().unwrap_or_default();
        assert!(reason.contains(meant), "{method} {path}: {problem}");
    }
    for path in [
        "tags?withStats=true",
        "short-urls?tags%5B0%5D=a&tags[]=b&page=&orderBy=",
        "visits/orphan?type=base_url&domain=DEFAULT&excludeBots=true",
    ] {
        assert_eq!(call(api, Method::GET, path, None).await.status, 200, "{path}");
    }
    let health = api.get("rest/health?probe=1").await.unwrap();
    assert_eq!(health.status, 200, "a health check may add what it likes");
    let stranger = call(&api.with_key(&"0".repeat(64)), Method::GET, "stats?code=x", None).await;
    assert_eq!(stranger.status, 401, "{stranger:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelled_variable_is_warned_of_and_what_kubernetes_sets_is_not() {
    let scratch = Scratch::new().unwrap();
    for (program, prefix, args) in [
        (binaries::resolver().await.unwrap(), "RESOLVER", &["config", "check"][..]),
        (
            binaries::issuer().await.unwrap(),
            "ISSUER",
            &["config", "check", "--etcd", "http://127.0.0.1:2379", "--insecure"],
        ),
    ] {
        let launch = Launch::new(&scratch, prefix, program).args(args);
        let launch = launch.env(format!("{prefix}_LISTENN"), "127.0.0.1:1");
        let launch = launch.env(format!("{prefix}_SERVICE_HOST"), "10.0.0.1");
        let launch = launch.env(format!("{prefix}_PORT"), "tcp://10.0.0.1:8080");
        let launch = launch.env(format!("{prefix}_PORT_8080_TCP_ADDR"), "10.0.0.1");
        let finished = launch.run(SOON).await.unwrap();
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
        let told = format!("{prefix}_LISTENN has no effect: did you mean {prefix}_LISTEN?");
        assert!(finished.stderr.contains(&told), "{}", finished.stderr);
        assert_eq!(finished.stderr.matches("has no effect").count(), 1, "{}", finished.stderr);
    }
}
