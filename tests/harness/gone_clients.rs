//! Clients that go away before their answer.

use std::time::Duration;

use anyhow::Context as _;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::sleep};

use crate::Resolver;

/// Clients at a time.
const AT_ONCE: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Sends creates, half of them with half of a body, and closes the connection before the answer,
/// until it is dropped. The whole ones lead to `https://example.org/gone`.
///
/// # Errors
/// The future returns an error if the resolver does not accept a connection.
pub fn clients_that_go_away(
    resolver: &Resolver,
) -> impl Future<Output = anyhow::Result<()>> + Send + 'static {
    let (addr, key) = (resolver.addr(), resolver.api.key().to_owned());
    async move {
        let body = r#"{"longUrl":"https://example.org/gone"}"#;
        let head = format!(
            "POST /rest/v3/short-urls HTTP/1.1\r\nhost: {addr}\r\nx-api-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let (whole, half) = (format!("{head}{body}"), format!("{head}{}", &body[..body.len() / 2]));
        loop {
            for number in 0..AT_ONCE {
                let mut client = TcpStream::connect(addr).await.context("connect")?;
                let request = if number % 2 == 0 { &whole } else { &half };
                client.write_all(request.as_bytes()).await.context("send a request")?;
            }
            sleep(PAUSE).await;
        }
    }
}
