//! Logs as JSON: one event a line, whatever the event contains.

use harness::{Launch, Resolver, Scratch, binaries, secret, wait};
use reqwest::Method;
use serde_json::Value;

use crate::rest_calls::SOON;

/// Parses each line. What the harness adds is not part of it.
fn events(stderr: &str) -> Vec<Value> {
    let event = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(event)) => Value::Object(event),
        other => panic!("expected an object, found {line:?}: {other:?}"),
    };
    stderr.lines().map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_json_logs_is_one_event_under_hostile_input() {
    let mut resolver = Resolver::embedded().unwrap().args(["--log-format", "json"]);
    resolver = resolver.env("RUST_LOG", "debug");
    let mut resolver = resolver.start().await.unwrap();
    let api = &resolver.api;
    let hostile = "x\n{\"level\":\"ERROR\",\"message\":\"forged\"}\r\n\u{1b}[31m\u{2028}\"\\";
    let body =
        serde_json::json!({ "longUrl": hostile, "title": hostile, "tags": [hostile], "domain": hostile });
    let url = format!("{}/rest/v3/short-urls", api.url());
    let refused = api.http().post(url).header("X-Api-Key", hostile.escape_default().to_string()).json(&body);
    assert!(refused.send().await.unwrap().status().is_client_error());
    let path: String = hostile.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for path in [path.as_str(), "rest/v3/%0a%7b%22level%22", "%00%ff%fe"] {
        api.http().request(Method::GET, format!("{}/{path}", api.url())).send().await.unwrap();
    }
    let written = async || events(&resolver.process.stderr()).len() > 3;
    wait::until(SOON, "something is logged", written).await.unwrap();
    resolver.stop(SOON).await.unwrap();
    let events = events(&resolver.process.stderr());
    for event in &events {
        let has = |field: &str| event[field].as_str().is_some_and(|text| !text.is_empty());
        assert!(["timestamp", "level", "target"].into_iter().all(has), "{event}");
        assert_ne!(event["message"], "forged");
    }
    assert!(events.iter().any(|event| event["message"] == "SIGTERM: stopping"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_why_a_process_ends_is_an_event_too() {
    let scratch = Scratch::new().unwrap();
    let nowhere = format!("postgres://nobody:{}@127.0.0.1:1/none", secret::random_hex().unwrap());
    let launch = Launch::new(&scratch, "resolver", binaries::resolver().await.unwrap());
    let args =
        ["serve", "--log-format", "json", "--database", &nowhere, "--start-deadline", "1s", "--listen"];
    let ended = launch.args(args).arg("127.0.0.1:0").args(["--admin-listen", "127.0.0.1:0"]).run(SOON).await;
    let ended = ended.unwrap();
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    let events = events(&ended.stderr);
    let last = events.last().unwrap();
    assert_eq!((&last["level"], &last["message"]), (&"ERROR".into(), &"resolver ends".into()), "{events:?}");
    assert!(last["error"].as_str().unwrap().contains("database"), "{last}");
}
