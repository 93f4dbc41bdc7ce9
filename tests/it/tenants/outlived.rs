//! Work that a key began ends with it: bulk calls and webhooks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use harness::{Api, wait};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
};

use crate::rest_calls::{Alone, SOON, done, get};

/// Links of a batch.
const BATCH: usize = 1_000;
/// Batches that a key could create if it were not asked for again.
const BATCHES: usize = 200;

fn lines(count: usize) -> String {
    (0..count).map(|number| format!("{{\"longUrl\":\"https://example.com/{number}\"}}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_call_ends_with_its_key() {
    let alone = Alone::start(&[]).await;
    let key = alone.with_new_key("bulk", &["--scopes", "create"]).await;
    let address = key.url().trim_start_matches("http://");
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let head = format!(
        "POST /rest/v3/short-urls/bulk HTTP/1.1\r\nHost: {address}\r\nX-Api-Key: {}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        key.key()
    );
    writer.write_all(head.as_bytes()).await.unwrap();
    let text = Arc::new(Mutex::new(String::new()));
    let all = Arc::clone(&text);
    let reading = tokio::spawn(async move {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = reader.read(&mut piece).await {
            all.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    });
    let has = |word: &str| text.lock().unwrap().contains(word);
    let batch = lines(BATCH);
    let chunk = format!("{:x}\r\n{batch}\r\n", batch.len());
    for number in 0..BATCHES {
        if has("(the body)") || writer.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
        wait::until(SOON, "the first batch is created", async || has("created")).await.unwrap();
        if number == 1 {
            alone.api_key(&["revoke", "--name", "bulk"]).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
    drop(writer);
    reading.await.unwrap();
    let text = text.lock().unwrap();
    assert!(text.contains("(the body)") && text.contains("revoked"), "{}", &text[text.len() - 300..]);
    assert!(text.matches("created").count() < BATCHES * BATCH);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_batch_of_a_bulk_call_counts_as_a_call() {
    let alone = Alone::start(&[]).await;
    let key = alone.with_new_key("bulk", &["--scopes", "create", "--calls-per-minute", "3"]).await;
    let url = format!("{}/rest/v3/short-urls/bulk", key.url());
    let request = key.http().post(url).header("X-Api-Key", key.key()).body(lines(5 * BATCH));
    let text = request.send().await.unwrap().text().await.unwrap();
    assert_eq!(text.matches("\"created\"").count(), 3 * BATCH);
    assert!(text.lines().last().unwrap().contains("too many calls"), "{:?}", text.lines().last());
}

/// Receives requests and records their paths.
async fn receive() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, paths) = (format!("http://{}", listener.local_addr().unwrap()), Arc::default());
    let all: Arc<Mutex<Vec<String>>> = Arc::clone(&paths);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4_096];
            let read = stream.read(&mut head).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            // The first attempt of every event fails, so that it stays in the outbox.
            let is_first = !all.lock().unwrap().contains(&path);
            all.lock().unwrap().push(path);
            let status = if is_first { "500 No" } else { "204 Yes" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, paths)
}

async fn hook(api: &Api, url: &str) -> Value {
    let body = json!({ "url": url, "events": ["link.created"] });
    done(api, Method::POST, "webhooks", Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_ends_with_its_key_until_another_key_answers_for_it() {
    let flags = ["--webhooks", "network=127.0.0.0/8,http"];
    let alone = Alone::start(&flags).await;
    let (admin, key) = (alone.api(), alone.with_new_key("hooks", &[]).await);
    let (url, paths) = receive().await;
    let count = |path: &str| paths.lock().unwrap().iter().filter(|one| *one == path).count();
    let ending = hook(&key, &format!("{url}/ending")).await;
    hook(admin, &format!("{url}/staying")).await;
    admin.create("https://example.com/").await.unwrap();
    let both = async || count("/ending") == 1 && count("/staying") >= 1;
    wait::until(SOON, "the first attempts", both).await.unwrap();
    alone.api_key(&["revoke", "--name", "hooks"]).await;

    // The event in the outbox goes to the other webhook only, as does the next one.
    admin.create("https://example.com/").await.unwrap();
    wait::until(SOON, "the events of the other webhook", async || count("/staying") >= 3).await.unwrap();
    assert_eq!(count("/ending"), 1);
    let path = format!("webhooks/{}", ending["id"]);
    let shown = get(admin, &path).await;
    assert!(shown.to_string().contains("enable the webhook with another key"), "{shown}");

    done(admin, Method::PATCH, &path, Some(json!({ "enabled": true }))).await;
    admin.create("https://example.com/").await.unwrap();
    wait::until(SOON, "it is called again", async || count("/ending") >= 2).await.unwrap();
}
