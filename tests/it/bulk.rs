//! Bulk creation of links: every item has its own result, whatever the results of the others.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use harness::{Answer, Resolver};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    Request,
    body::{Bytes, Frame},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use reqwest::{Body, RequestBuilder};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const PATH: &str = "rest/v3/short-urls/bulk";

fn call(resolver: &Resolver, body: impl Into<Body>) -> RequestBuilder {
    let api = &resolver.api;
    let request = api.http().post(format!("{}/{PATH}", api.url())).header("X-Api-Key", api.key());
    request.timeout(Duration::from_secs(120)).body(body)
}

fn item(number: usize) -> Value {
    json!({ "longUrl": format!("https://example.com/{number}") })
}

/// Follows the created links and returns the names of all results.
async fn check(resolver: &Resolver, results: &[Value]) -> Vec<String> {
    let mut names = Vec::new();
    for (number, result) in results.iter().enumerate() {
        names.push(result["result"].as_str().unwrap().to_owned());
        if let Some(code) = result["shortCode"].as_str() {
            let target = format!("https://example.com/{number}");
            assert_eq!(resolver.api.follow(code).await.unwrap(), (302, Some(target)));
            assert_eq!(result["shortUrl"], format!("{}/{code}", resolver.api.url()));
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_and_lines_are_answered_item_by_item_in_their_own_form() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let items =
        [item(0), json!({ "longUrl": "ftp://x" }), item(2), json!({ "longUrl": 3, "tags": 4 }), item(4)];
    let names = ["created", "invalid", "created", "invalid", "created"];

    let array = Answer::to(call(&resolver, Value::from(items.to_vec()).to_string())).await.unwrap();
    assert_eq!((array.status, array.header("content-type")), (200, Some("application/json")));
    let array = array.json().unwrap();
    let results = array["results"].as_array().unwrap();
    assert_eq!(check(&resolver, results).await, names);
    assert_eq!(
        results[1]["expected"],
        json!({ "longUrl": "expected one of the schemes http, https, mailto, tel (--allowed-schemes)" })
    );
    assert_eq!(results[3]["expected"].as_object().unwrap().len(), 2, "every wrong field is named");

    let body = items.map(|item| item.to_string()).join("\n");
    let lines = Answer::to(call(&resolver, body)).await.unwrap();
    assert_eq!((lines.status, lines.header("content-type")), (200, Some("application/x-ndjson")));
    let results: Vec<Value> = lines.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(check(&resolver, &results).await, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_links_are_created_and_not_one_more() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let body: String = (0..100_001).map(|number| format!("{}\n", item(number))).collect();
    let answer = Answer::to(call(&resolver, body)).await.unwrap();
    let results: Vec<Value> = answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 100_001);
    let last = json!({ "result": "invalid", "expected": { "(the body)": "expected at most 100000 links" } });
    assert_eq!(results.last(), Some(&last));
    let mut codes: Vec<_> = results.iter().filter_map(|result| result["shortCode"].as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 100_000);
    for number in (0..100_000).step_by(7_919) {
        let code = results[number]["shortCode"].as_str().unwrap();
        let target = format!("https://example.com/{number}");
        assert_eq!(resolver.api.follow(code).await.unwrap(), (302, Some(target)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_before_the_trouble_is_created_and_the_trouble_is_told() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    for (rest, expected) in [
        ("", "the body ended inside the array"),
        (",]", "expected a JSON array of objects, or one object per line"),
    ] {
        let body = format!("[{},{}{rest}", item(0), item(1));
        let answer = Answer::to(call(&resolver, body)).await.unwrap().json().unwrap();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(check(&resolver, results).await, ["created", "created", "invalid"]);
        assert_eq!(results[2]["expected"]["(the body)"], expected);
    }
    let empty = Answer::to(call(&resolver, "[]")).await.unwrap();
    assert_eq!(empty.json().unwrap(), json!({ "results": [] }));
    let malformed = Answer::to(call(&resolver, "{\n")).await.unwrap();
    assert!(malformed.body.contains("expected a JSON object"), "{malformed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_begin_while_the_body_still_comes() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let mut connection = TcpStream::connect(resolver.addr()).await.unwrap();
    // The maximum size of one batch, so the first results come before the rest of the body.
    let items: String = (0..1_000).map(|number| format!("{}\n", item(number))).collect();
    let head = format!(
        "POST /{PATH} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {}\r\nContent-Length: {}\r\n\r\n",
        resolver.api.key(),
        2 * items.len()
    );
    connection.write_all(format!("{head}{items}").as_bytes()).await.unwrap();
    let mut begun = String::new();
    while !begun.contains("\"result\":\"created\"") {
        let mut piece = [0; 4_096];
        let count = timeout(Duration::from_secs(10), connection.read(&mut piece)).await.unwrap().unwrap();
        assert!(count > 0, "closed after {begun}");
        begun.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_servers_stop_ends_has_a_result_for_each_link_that_is_stored() {
    let mut resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let stream = TcpStream::connect(resolver.addr()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let lines = stream::iter(0..).then(async |number| {
        tokio::time::sleep(Duration::from_micros(200)).await;
        Ok::<_, std::io::Error>(Frame::data(Bytes::from(format!("{}\n", item(number)))))
    });
    let request = Request::post(format!("/{PATH}"))
        .header("host", resolver.addr().to_string())
        .header("x-api-key", resolver.api.key())
        .body(StreamBody::new(Box::pin(lines)))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    resolver.process.terminate().unwrap();
    let body = timeout(Duration::from_secs(60), answer.into_body().collect()).await.unwrap().unwrap();
    let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    let results: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, created) = results.split_last().unwrap();
    assert!(last["expected"]["(the body)"].as_str().unwrap().contains("stopping"), "{last}");
    drop(sender);
    resolver.process.wait_exit(Duration::from_secs(60)).await.unwrap();
    resolver.restart().await.unwrap();
    assert!(check(&resolver, created).await.iter().all(|name| name == "created"));
    assert_eq!(crate::rest_calls::count(&resolver.api).await, created.len());
}
