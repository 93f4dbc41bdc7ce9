//! One request to an address at which any server may answer, for `resolver doctor`.

use std::time::Duration;

use url::Url;

use crate::{
    client::{agent, send},
    table::{cut, printable},
};

/// Longest body that is read, in bytes: metrics pages have a tenth.
const BODY_BYTES: u64 = 4 << 20;
/// Maximum width of an error, in cells.
const ERROR_CELLS: usize = 200;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Its status.
    pub status: u16,
    /// Its body as text.
    pub body: String,
}

/// Sends a GET request without a key, and follows no redirect. The error is the reason why there is
/// no answer.
pub async fn probe(url: &str, within: Duration) -> Result<Probed, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let asked = tokio::task::spawn_blocking(move || ask(&url, within).map_err(|error| error.to_string()));
    let asked = asked.await.unwrap_or_else(|_| Err("the request failed".to_owned()));
    asked.map_err(|reason| cut(&printable(&reason), ERROR_CELLS))
}

fn ask(url: &Url, within: Duration) -> Result<Probed, ureq::Error> {
    let request = ureq::http::Request::get(url.as_str()).body(())?;
    let reply = send(&agent(url), request, within, BODY_BYTES)?;
    Ok(Probed { status: reply.status, body: String::from_utf8_lossy(&reply.body).into_owned() })
}
