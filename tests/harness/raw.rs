//! HTTP as no client library would send it: too much, or too slowly.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::ANSWER_WITHIN;

/// Sends bytes on a connection of its own until the server answers, and returns all it answers up to its close.
///
/// A server that has seen enough stops reading, so the rest of the bytes is not waited for.
///
/// # Errors
/// The server neither answers nor closes in time, or closes without an answer.
pub async fn exchange(addr: SocketAddr, bytes: &[u8]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(addr).await.with_context(|| format!("connect to {addr}"))?;
    let (mut from, mut to) = stream.split();
    let mut first = [0];
    let answered = async {
        tokio::select! {
            biased;
            // Bytes of an answer, or a close; either is read below.
            _ = from.peek(&mut first) => {}
            // A failed write means that the server has closed its side: what it said before is read below.
            () = async { drop(to.write_all(bytes).await); std::future::pending().await } => {}
        }
        let mut answer = Vec::new();
        // A reset comes behind the answer when the server did not read all: what came before it counts.
        let ended = from.read_to_end(&mut answer).await;
        anyhow::ensure!(!answer.is_empty(), "closed without an answer: {ended:?}");
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(ANSWER_WITHIN, answered).await.context("wait for an answer and the close")?
}

/// The status of an answer as [`exchange`] returns it.
///
/// # Errors
/// The text is no HTTP/1.1 answer.
pub fn status(answer: &str) -> anyhow::Result<u16> {
    let rest = answer.strip_prefix("HTTP/1.1 ").with_context(|| format!("no HTTP/1.1: {answer}"))?;
    let digits = rest.get(..3).with_context(|| format!("no status: {answer}"))?;
    digits.parse().with_context(|| format!("no status: {answer}"))
}

/// Sends bytes, then nothing more, and waits for the server to close the connection.
///
/// # Errors
/// It is still open after the given time.
pub async fn wait_closed(addr: SocketAddr, bytes: &[u8], within: Duration) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(addr).await.with_context(|| format!("connect to {addr}"))?;
    stream.write_all(bytes).await.context("send")?;
    // An answer before the close is fine, and so is a reset instead of one.
    let mut rest = Vec::new();
    let closed = timeout(within, stream.read_to_end(&mut rest)).await;
    closed.map(drop).with_context(|| format!("still open after {within:?}"))
}
