//! One trace from a proxy over the resolver to the issuer, read by a receiver of OTLP that is none
//! of ours.

use std::{path::Path, time::Duration};

use harness::{Answer, Cluster, Envoy, Launch, Process, Scratch, net, wait};
use serde_json::{Value, json};

use crate::k8s::in_venv;

const RECEIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/tracing/receiver.py");
/// The issuer's span of the call that a reservation makes.
const ALLOCATE: &str = "shortmint.issuer.v1.Issuer/AllocateBlock";
const SOON: Duration = Duration::from_secs(30);

/// Starts the receiver, which appends spans to a file.
fn receive(scratch: &Scratch, address: &str, file: &Path) -> Process {
    let python = Launch::new(scratch, "receiver", in_venv("python"));
    python.arg(RECEIVER).arg(address).arg(file).spawn().unwrap()
}

fn spans(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the issuer's span of an allocation, and those that it was made in: the call of the
/// resolver, the request that it answers, and the proxy's. They arrive in any order.
fn ancestry(spans: &[Value]) -> Option<[&Value; 4]> {
    let parent = |of: &Value| spans.iter().find(|span| span["span"] == of["parent"]);
    spans.iter().filter(|span| span["name"] == ALLOCATE).find_map(|issuer| {
        let client = parent(issuer)?;
        let server = parent(client)?;
        Some([issuer, client, server, parent(server)?])
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_leads_from_a_proxy_over_the_resolver_to_the_issuer() {
    let scratch = Scratch::new().unwrap();
    let collector = net::free_addr().unwrap();
    let file = scratch.path().join("spans");
    let _receiver = receive(&scratch, &collector.to_string(), &file);
    let otlp = format!("http://{collector}");
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1);
    let cluster = cluster.issuer_args(["--otlp", &otlp]);
    // The address that the kernel gives to the proxy's connections.
    let trusting = ["--otlp", &otlp, "--trace-share", "0", "--trusted-proxies", "127.0.0.1/32"];
    let cluster = cluster.resolver_args(trusting).start().await.unwrap();
    let resolver = &cluster.resolvers[0];
    let envoy = Envoy::start(&scratch, resolver.addr(), Some(collector)).await.unwrap();
    let proxy = envoy.addr();

    // A reservation asks the issuer for numbers while its caller waits.
    let http = resolver.api.http();
    let reserve = http.post(format!("http://{proxy}/rest/v3/reservations")).json(&json!({ "count": 10 }));
    let reserved = Answer::to(reserve.header("X-Api-Key", resolver.api.key())).await.unwrap();
    reserved.success().unwrap();
    let code = resolver.api.create("https://example.com/").await.unwrap().code;
    let followed = http.get(format!("http://{proxy}/{code}"));
    assert_eq!(Answer::to(followed).await.unwrap().status, 302);

    let is_redirect = |span: &&Value| span["name"] == "GET redirect";
    wait::until(SOON, "the spans have arrived", async || {
        let spans = spans(&file);
        ancestry(&spans).is_some() && spans.iter().any(|span| is_redirect(&span))
    })
    .await
    .unwrap();
    let spans = spans(&file);
    let [issuer, client, server, proxied] = ancestry(&spans).unwrap();
    assert_eq!(issuer["service"], "shortmint-issuer");
    assert_eq!((&client["name"], &server["service"]), (&"issuer".into(), &"shortmint-resolver".into()));
    let name = server["name"].as_str().unwrap();
    assert!(name.starts_with("POST ") && name.contains("reserv"), "{name}");
    assert_eq!(server["attributes"]["http.response.status_code"], 200);
    assert_eq!(proxied["service"], "proxy");
    assert!([client, server, proxied].iter().all(|span| span["trace"] == issuer["trace"]));
    // Codes and addresses are personal data, and belong into no trace.
    let redirect = spans.iter().find(is_redirect).unwrap();
    assert!(!redirect.to_string().contains(&code), "{redirect}");
    // The create had no traceparent, and the share of traces that begin here is zero.
    assert!(spans.iter().all(|span| span["name"] != "POST create_short_url"), "{spans:#?}");
}
