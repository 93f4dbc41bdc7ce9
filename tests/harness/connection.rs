//! One HTTP/1.1 connection, as a load balancer holds it: kept alive, and seen as it is.
//!
//! A pooling client sends a request again when its connection was closed under it, and opens another when it likes.
//! So it cannot tell whether a server cut a request off. Here nothing is repeated and nothing reopened.

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

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    addr: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// The connection is refused, or nobody answers.
    pub async fn open(addr: SocketAddr) -> anyhow::Result<Self> {
        let connected = timeout(CONNECT_WITHIN, TcpStream::connect(addr)).await;
        let stream = connected.map_err(std::io::Error::from).flatten();
        let stream = stream.with_context(|| format!("connect to {addr}"))?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.context("start HTTP")?;
        // It ends with the sender; its errors reach the requests.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { addr, sender })
    }

    /// Gets a path, given with its slash at the front.
    ///
    /// # Errors
    /// There was no complete answer.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        let request = Request::get(path);
        self.send(request, Bytes::new()).await.with_context(|| format!("GET {path}"))
    }

    /// Asks for a link.
    ///
    /// # Errors
    /// There was no complete answer, so the link may exist or not.
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

/// Whether the server said that it closes the connection behind this answer.
pub fn is_last(answer: &Answer) -> bool {
    answer.header(CONNECTION.as_str()).is_some_and(|value| value.eq_ignore_ascii_case("close"))
}
