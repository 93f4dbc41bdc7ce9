//! A single HTTP/1.1 connection, kept alive as a load balancer does, without retries.
//!
//! A pooling client resends a request when its connection was closed under it, and opens new
//! connections as it likes. So it cannot tell whether a server cut a request off. This client never
//! resends and never reconnects.

use std::net::SocketAddr;

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper::http::request::Builder;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::{ANSWER_WITHIN, Answer, CONNECT_WITHIN};

/// An open HTTP/1.1 connection. Dropping it closes the connection.
#[derive(Debug)]
pub struct Connection {
    addr: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns an error if the connection is refused or not established in time.
    pub async fn open(addr: SocketAddr) -> anyhow::Result<Self> {
        let connected = timeout(CONNECT_WITHIN, TcpStream::connect(addr)).await;
        let stream = connected.map_err(std::io::Error::from).flatten();
        let stream = stream.with_context(|| format!("connect to {addr}"))?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.context("start HTTP")?;
        // The task ends when the sender is dropped; its errors reach the requests.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { addr, sender })
    }

    /// Sends a GET request for a path with its leading slash.
    ///
    /// # Errors
    /// Returns an error if there is no complete response.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        let request = Request::get(path);
        self.send(request, Bytes::new()).await.with_context(|| format!("GET {path}"))
    }

    /// Sends a create request.
    ///
    /// # Errors
    /// Returns an error if there is no complete response. Then the link may or may not exist.
    pub async fn create(&mut self, key: &str, long_url: &str) -> anyhow::Result<Answer> {
        let request = Request::post("/rest/v3/short-urls").header("X-Api-Key", key);
        let body = json!({ "longUrl": long_url }).to_string();
        let request = request.header(CONTENT_TYPE, "application/json");
        self.send(request, body.into()).await.with_context(|| format!("create {long_url}"))
    }

    async fn send(&mut self, request: Builder, body: Bytes) -> anyhow::Result<Answer> {
        let request = request.header(HOST, self.addr.to_string()).body(Full::new(body));
        let request = request.context("make a request")?;
        timeout(ANSWER_WITHIN, self.exchange(request)).await.context("wait for an answer")?
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        self.sender.ready().await.context("find the connection open")?;
        let response = self.sender.send_request(request).await.context("send a request")?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await.context("read a response's body")?.to_bytes();
        Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

/// Returns whether the server announced that it closes the connection after this response.
pub fn is_last(answer: &Answer) -> bool {
    answer.header(CONNECTION.as_str()).is_some_and(|value| value.eq_ignore_ascii_case("close"))
}
