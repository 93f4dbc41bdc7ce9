//! Reading a request's body, within bounds.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::problem::Problem;

/// A long URL of 8 KiB, escaped at its worst, and all other fields fit.
const BODY_BYTES: usize = 64 * 1024;
/// How long a client may take to send it.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Reads the whole body. One that announces to be too large is refused before any of it is waited for.
pub(super) async fn read(body: Incoming) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > BODY_BYTES as u64 {
        return Err(Problem::BodyTooLarge { limit: BODY_BYTES });
    }
    let collected = timeout(BODY_TIME, Limited::new(body, BODY_BYTES).collect()).await;
    match collected.map_err(|_| Problem::SlowBody)? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::BodyTooLarge { limit: BODY_BYTES }),
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
