//! Many redirects over one connection, without a client library in between: requests are pipelined,
//! and answers are only counted.

use std::net::SocketAddr;

use anyhow::Context;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::ANSWER_WITHIN;

/// Requests under way at a time.
const AT_ONCE: usize = 100;
/// The beginning of an answer that redirects.
const REDIRECT: &[u8] = b"HTTP/1.1 302";

/// A connection that follows one link again and again.
#[derive(Debug)]
pub struct Pipeline {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Pipeline {
    /// Connects to a resolver.
    ///
    /// # Errors
    /// Returns an error if it does not accept the connection.
    pub async fn connect(addr: SocketAddr, code: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await.with_context(|| format!("connect to {addr}"))?;
        let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
        let request = format!("GET /{code} HTTP/1.1\r\nHost: {addr}\r\nUser-Agent: {agent}\r\n\r\n");
        Ok(Self { stream, request: request.into_bytes() })
    }

    /// Follows the link so many times, and returns once all are redirected.
    ///
    /// # Errors
    /// Returns an error if an answer does not come in time.
    pub async fn follow(&mut self, count: usize) -> anyhow::Result<()> {
        let mut left = count;
        while left > 0 {
            let some = left.min(AT_ONCE);
            self.stream.write_all(&self.request.repeat(some)).await.context("send")?;
            timeout(ANSWER_WITHIN, self.read(some)).await.context("wait for redirects")??;
            left -= some;
        }
        Ok(())
    }

    /// Follows the link so many times, each time from another page with a long address of random
    /// letters: about a kilobyte for each visit, which cannot be compressed.
    ///
    /// # Errors
    /// Returns an error if an answer does not come in time.
    pub async fn follow_from_pages(&mut self, count: usize) -> anyhow::Result<()> {
        let head = self.request.len() - "\r\n".len();
        for begin in (0..count).step_by(AT_ONCE) {
            let some = AT_ONCE.min(count - begin);
            let mut requests = Vec::new();
            for _ in 0..some {
                let mut letters = [0; 720];
                getrandom::fill(&mut letters)
                    .map_err(|failed| anyhow::anyhow!("read random bytes: {failed}"))?;
                let page = format!("Referer: https://example.com/{}\r\n\r\n", STANDARD.encode(letters));
                requests.extend_from_slice(&self.request[..head]);
                requests.extend_from_slice(page.as_bytes());
            }
            self.stream.write_all(&requests).await.context("send")?;
            timeout(ANSWER_WITHIN, self.read(some)).await.context("wait for redirects")??;
        }
        Ok(())
    }

    /// Reads so many answers. Whatever follows their status lines is left out.
    async fn read(&mut self, count: usize) -> anyhow::Result<()> {
        let (mut answers, mut buffer, mut seen) = (Vec::new(), [0; 16 * 1024], 0);
        while seen < count {
            let len = self.stream.read(&mut buffer).await.context("read")?;
            anyhow::ensure!(len > 0, "closed after {seen} of {count} answers");
            answers.extend_from_slice(&buffer[..len]);
            seen = answers.windows(REDIRECT.len()).filter(|window| *window == REDIRECT).count();
        }
        // The last answer ends with an empty line: a redirect has no body.
        while !answers.ends_with(b"\r\n\r\n") {
            let len = self.stream.read(&mut buffer).await.context("read")?;
            anyhow::ensure!(len > 0, "closed within an answer");
            answers.extend_from_slice(&buffer[..len]);
        }
        Ok(())
    }
}
