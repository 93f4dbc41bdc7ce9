//! Raw HTTP exchanges that a client library would not send: too much, or too slowly.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::ANSWER_WITHIN;

/// Sends bytes on a new connection until the server responds, and returns the response up to the
/// close.
///
/// A server that has seen enough stops reading, so this does not wait for the rest of the bytes.
///
/// # Errors
/// Returns an error if the server neither responds nor closes in time, or closes without a
/// response.
pub async fn exchange(addr: SocketAddr, bytes: &[u8]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(addr).await.with_context(|| format!("connect to {addr}"))?;
    let (mut from, mut to) = stream.split();
    let mut first = [0];
    let answered = async {
        tokio::select! {
            biased;
            // Bytes of a response, or a close; both are read below.
            _ = from.peek(&mut first) => {}
            // A failed write means that the server has closed its side. A response from before that
            // is read below.
            () = async { drop(to.write_all(bytes).await); std::future::pending().await } => {}
        }
        let mut answer = Vec::new();
        // If the server did not read everything, a reset follows the response. The bytes before the
        // reset count.
        let ended = from.read_to_end(&mut answer).await;
        anyhow::ensure!(!answer.is_empty(), "closed without an answer: {ended:?}");
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(ANSWER_WITHIN, answered).await.context("wait for an answer and the close")?
}

/// Returns the status of a response from [`exchange`].
///
/// # Errors
/// Returns an error if the text is not an HTTP/1.1 response.
pub fn status(answer: &str) -> anyhow::Result<u16> {
    let rest = answer.strip_prefix("HTTP/1.1 ").with_context(|| format!("no HTTP/1.1: {answer}"))?;
    let digits = rest.get(..3).with_context(|| format!("no status: {answer}"))?;
    digits.parse().with_context(|| format!("no status: {answer}"))
}

/// Sends bytes, then nothing more, and waits for the server to close the connection.
///
/// # Errors
/// Returns an error if the connection is still open after the given time.
pub async fn wait_closed(addr: SocketAddr, bytes: &[u8], within: Duration) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(addr).await.with_context(|| format!("connect to {addr}"))?;
    stream.write_all(bytes).await.context("send")?;
    // A response before the close is fine, and so is a reset instead of a close.
    let mut rest = Vec::new();
    let closed = timeout(within, stream.read_to_end(&mut rest)).await;
    closed.map(drop).with_context(|| format!("still open after {within:?}"))
}
