//! Reading a request's body, within bounds.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::problem::Problem;

/// A long URL of 8 KiB, escaped at its worst, and all other fields fit.
const BODY_BYTES: usize = 64 * 1024;
/// Ten thousand links of ordinary length.
const MANY_BYTES: usize = 4 * 1024 * 1024;
/// A hundred rules with twenty conditions each.
const RULES_BYTES: usize = 1024 * 1024;
/// How long a client may take to send it.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Bytes that a call of this path may send: a fill brings many links at once.
pub(super) fn limit(path: &str) -> usize {
    let many = path.starts_with("/rest/v3/reservations/") && path.ends_with("/short-urls");
    match path {
        _ if many => MANY_BYTES,
        path if path.ends_with("/redirect-rules") => RULES_BYTES,
        _ => BODY_BYTES,
    }
}

/// Reads the whole body. One that announces to be too large is refused before any of it is waited for.
pub(super) async fn read(body: Incoming, limit: usize) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::BodyTooLarge { limit });
    }
    let collected = timeout(BODY_TIME, Limited::new(body, limit).collect()).await;
    match collected.map_err(|_| Problem::SlowBody)? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::BodyTooLarge { limit }),
        Err(_) => Err(Problem::MalformedBody),
    }
}

/// The fields of a JSON object; an empty body is an object without fields.
pub(super) fn fields(body: &Bytes) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|_| Problem::MalformedBody)
}
