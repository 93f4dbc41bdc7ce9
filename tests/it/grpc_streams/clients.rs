//! The clients of gRPC that most services use, at full speed. `tests/run` installs both.

use std::path::Path;

use harness::{Launch, ROOT, Scratch, installed::node};
use serde_json::Value;

use super::{Served, WITHIN};
use crate::k8s::in_venv;

/// The environment variable with the requests of a stream, for a run at length.
const REQUESTS_VARIABLE: &str = "SHORTMINT_STREAMED";
/// Requests of a stream in the gate: enough for a client to be far ahead of the answers.
const REQUESTS: u64 = 1_000;
/// Streams beside it that read their answers only when it has ended.
const SLOW: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn grpcio_has_each_request_answered_at_full_speed() {
    let scratch = Scratch::new().unwrap();
    let python = Launch::new(&scratch, "grpcio", in_venv("python"));
    expect_all(python.arg(Path::new(ROOT).join("tests/sdk/grpc/drive.py")), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_js_has_each_request_answered_at_full_speed() {
    let scratch = Scratch::new().unwrap();
    let node = node(&scratch, "sdk/grpc/drive.mjs", "grpc").unwrap();
    expect_all(node, &[&format!("{ROOT}/proto")]).await;
}

/// Runs a program that streams creates, and compares what it was told with what is stored.
async fn expect_all(program: Launch, last: &[&str]) {
    let served = Served::start().await;
    let set = std::env::var(REQUESTS_VARIABLE).ok().map(|set| set.parse().expect("a number"));
    let requests: u64 = set.unwrap_or(REQUESTS);
    let counts = [requests.to_string(), SLOW.to_string()];
    let program = program.args([&served.address.to_string(), served.resolver.api.key()]).args(&counts);
    let within = WITHIN * u32::try_from(1 + requests / 10_000).unwrap();
    let finished = program.args(last).run(within).await.unwrap();
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    let told: Value = serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap();
    let sent = requests * (SLOW + 1);
    let count = |name: &str| told[name].as_u64().unwrap();
    assert_eq!((count("sent"), count("links") + count("refused")), (sent, sent), "{told}");
    assert_eq!(told["statuses"], serde_json::json!(["OK"]), "{told}");
    assert_eq!(served.stored().await, count("links"), "{told}");
}
