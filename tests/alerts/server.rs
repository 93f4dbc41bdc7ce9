//! A server that answers every request alike: a receiver of webhooks, and the metrics of parts of
//! Kubernetes, which no test machine has.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use harness::net;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Bytes of a request that are read at once; the rest of a longer one is not needed.
const REQUEST_BYTES: usize = 64 * 1024;

/// A server on the loopback interface.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    answer: Arc<Mutex<String>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server that answers with this status and no body.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub(crate) async fn start(status: u16) -> anyhow::Result<Self> {
        let addr = net::free_addr()?;
        let listener = TcpListener::bind(addr).await.context("listen")?;
        let answer = Arc::<Mutex<String>>::default();
        let shared = Arc::clone(&answer);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(reply(stream, Arc::clone(&shared)));
            }
        });
        let server = Self { addr, answer, task };
        server.answers(status, "");
        Ok(server)
    }

    /// Changes the answer.
    pub(crate) fn answers(&self, status: u16, body: &str) {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn reply(mut stream: TcpStream, answer: Arc<Mutex<String>>) {
    let mut request = vec![0; REQUEST_BYTES];
    // A client that goes away needs no answer.
    if stream.read(&mut request).await.is_ok_and(|read| read > 0) {
        let text = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}
