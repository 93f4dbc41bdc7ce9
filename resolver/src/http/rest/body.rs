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
/// A hundred rules with twenty short conditions each.
const RULES_BYTES: usize = 256 * 1024;
/// Bytes of a refused body that are read and thrown away, and for how long.
const DISCARDED: usize = 4 * 1024 * 1024;
const DISCARDED_FOR: Duration = Duration::from_millis(500);
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

/// Reads the whole body. One that is too large is refused; what the client still sends of it is thrown away first, for a moment: a close in the
/// middle of it would take the answer with it.
pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > limit as u64 {
        discard(&mut body).await;
        return Err(Problem::BodyTooLarge { limit });
    }
    let mut limited = Limited::new(&mut body, limit);
    let collected = timeout(BODY_TIME, async {
        let mut pieces = Vec::new();
        while let Some(frame) = limited.frame().await {
            pieces.extend_from_slice(&frame?.into_data().unwrap_or_default());
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(pieces)
    });
    match collected.await.map_err(|_| Problem::SlowBody)? {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) if error.is::<LengthLimitError>() => {
            discard(&mut body).await;
            Err(Problem::BodyTooLarge { limit })
        }
        Err(_) => Err(Problem::MalformedBody),
    }
}

async fn discard(body: &mut Incoming) {
    let mut left = DISCARDED;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // Whoever sends nothing more has its answer after that.
    let _ = timeout(DISCARDED_FOR, all).await;
}

/// The fields of a JSON object; an empty body is an object without fields.
pub(super) fn fields(body: &Bytes) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|_| Problem::MalformedBody)
}
