//! A request whose body trickles in does not outlive its key.

use std::{convert::Infallible, time::Duration};

use futures_util::stream;
use harness::net::free_addr;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    Request,
    body::{Bytes, Frame},
    client::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use proto::links::v1::CreateLinkRequest;
use reqwest::StatusCode;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    time::sleep,
};

use crate::{
    pages::{form_token, sign_in},
    rest_calls::{Alone, call, get},
};

/// The time within which a key ends everywhere.
const ENDED: Duration = Duration::from_millis(1_100);
const REVOKE: [&str; 3] = ["revoke", "--name", "slow"];

/// A request of which the last byte is missing.
struct Begun {
    connection: TcpStream,
    last: u8,
}

impl Begun {
    async fn send(address: &str, head: &str, body: &str) -> Self {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let (last, rest) = body.as_bytes().split_last().unwrap();
        let head =
            format!("{head}Host: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        connection.write_all(&[head.as_bytes(), rest].concat()).await.unwrap();
        Self { connection, last: *last }
    }

    async fn finish(mut self) -> String {
        self.connection.write_all(&[self.last]).await.unwrap();
        let mut answer = Vec::new();
        self.connection.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_body_trickles_in_end_with_their_key() {
    let grpc = free_addr().unwrap();
    let alone = Alone::start(&["--grpc-listen", &grpc.to_string()]).await;
    let wish = json!({ "longUrl": "https://example.com/", "customSlug": "kept" });
    alone.api().create_with(&wish).await.unwrap();
    let key = alone.with_new_key("slow", &[]).await;
    let address = key.url().trim_start_matches("http://");
    let begin = async |line: &str, body: &str| {
        let head =
            format!("{line} HTTP/1.1\r\nX-Api-Key: {}\r\nContent-Type: application/json\r\n", key.key());
        Begun::send(address, &head, body).await
    };
    let create = begin("POST /rest/v3/short-urls", r#"{"longUrl":"https://late.example/"}"#).await;
    let edit = begin("PATCH /rest/v3/short-urls/kept", r#"{"longUrl":"https://late.example/"}"#).await;
    let rule = begin("PUT /rest/v3/targets", r#"{"pattern":"late.example","allowed":true}"#).await;

    let cookie = sign_in(key.url(), key.key()).await;
    let token = form_token(&format!("{}/manage", key.url()), &cookie).await;
    let head = format!(
        "POST /manage/create HTTP/1.1\r\nOrigin: {}\r\nCookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        key.url()
    );
    let form = format!("formToken={token}&longUrl=https%3A%2F%2Flate.example%2F&customSlug=late");
    let page = Begun::send(address, &head, &form).await;

    let (send, rest) = oneshot::channel();
    let called = tokio::spawn(call_slowly(grpc, key.key().to_owned(), rest));
    sleep(Duration::from_millis(300)).await;
    alone.api_key(&REVOKE).await;
    sleep(ENDED).await;
    for begun in [create, edit, rule] {
        let answer = begun.finish().await;
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("invalid-api-key"), "{answer}");
    }
    let answer = page.finish().await;
    assert!(answer.starts_with("HTTP/1.1 303 ") && answer.contains("/_pages/sign-in"), "{answer}");
    send.send(()).unwrap();
    assert_eq!(called.await.unwrap(), "16", "UNAUTHENTICATED");

    let links = get(alone.api(), "short-urls").await;
    assert_eq!(links["shortUrls"]["pagination"]["totalItems"], 1, "{links}");
    assert_eq!(links["shortUrls"]["data"][0]["longUrl"], "https://example.com/");
    assert_eq!(get(alone.api(), "targets").await["targets"]["data"], json!([]));
    let gone = call(&key, reqwest::Method::GET, "short-urls", None).await;
    assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
}

/// Calls `CreateLink`, whose message ends when `rest` is told. Returns the status.
async fn call_slowly(address: std::net::SocketAddr, key: String, rest: oneshot::Receiver<()>) -> String {
    let connection = TcpStream::connect(address).await.unwrap();
    let builder = http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = builder.handshake(TokioIo::new(connection)).await.unwrap();
    tokio::spawn(connection);
    let wish =
        CreateLinkRequest { long_url: "https://late.example/".to_owned(), ..CreateLinkRequest::default() };
    let mut message = vec![0];
    message.extend(u32::try_from(wish.encoded_len()).unwrap().to_be_bytes());
    message.extend(wish.encode_to_vec());
    let last = Bytes::from(message.split_off(message.len() - 1));
    let frame = |bytes| Ok::<_, Infallible>(Frame::data(bytes));
    let frames =
        stream::unfold((vec![last, message.into()], Some(rest)), move |(mut left, rest)| async move {
            let next: Bytes = left.pop()?;
            let rest = match (left.is_empty(), rest) {
                (true, Some(rest)) => {
                    rest.await.unwrap();
                    None
                }
                (_, rest) => rest,
            };
            Some((frame(next), (left, rest)))
        });
    let request = Request::post(format!("http://{address}/shortmint.links.v1.Links/CreateLink"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-api-key", key)
        .body(StreamBody::new(Box::pin(frames)))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let head = answer.headers().get("grpc-status").cloned();
    let trailers = answer.into_body().collect().await.unwrap().trailers().cloned();
    let told = head.or_else(|| trailers?.get("grpc-status").cloned()).expect("a status");
    told.to_str().unwrap().to_owned()
}
