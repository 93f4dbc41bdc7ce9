//! Reads a request's body within bounds: the length of one body, the memory of all bodies, and the
//! client's pace.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Incoming};
use tokio::time::timeout;

use super::problem::Problem;
use limits::{Held, Pace, from_client};

/// Maximum length of a refused body that is read and discarded, and the time for it.
const DISCARDED: usize = 4 * 1024 * 1024;
const DISCARDED_FOR: Duration = Duration::from_millis(500);
/// The time that a client may send nothing, and so also the time for a body of a few bytes.
const GRACE: Duration = Duration::from_secs(10);
/// The least rate after that.
const BYTES_PER_SECOND: u32 = 16 * 1024;
/// The first capacity of a body's buffer, in bytes.
const FIRST_BYTES: usize = 16 * 1024;

/// Reads the whole body. Its memory is on the account of `held`. If it is too large, the rest is
/// discarded for a moment: closing the connection meanwhile would lose the answer.
pub(super) async fn read(mut body: Incoming, limit: usize, held: &mut Held) -> Result<Bytes, Problem> {
    let read = read_within(&mut body, limit, held).await;
    if read.is_err() {
        discard(&mut body).await;
    }
    read
}

async fn read_within(body: &mut Incoming, limit: usize, held: &mut Held) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::BodyTooLarge { limit });
    }
    let most = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok()).unwrap_or(limit);
    let (mut bytes, mut pace) = (Vec::new(), Pace::new(GRACE, BYTES_PER_SECOND));
    while !body.is_end_stream() {
        let frame = pace.wait(from_client(body.frame())).await.map_err(|_| Problem::SlowBody)?;
        let Some(frame) = frame else { break };
        let piece = frame.map_err(|_| Problem::MalformedBody)?.into_data().unwrap_or_default();
        pace.received(piece.len());
        if piece.len() > limit - bytes.len() {
            return Err(Problem::BodyTooLarge { limit });
        }
        make_room(&mut bytes, piece.len(), most.min(limit), held)?;
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.into())
}

/// Grows a buffer by half, at most to the length that the body can have, once that is on the
/// account.
fn make_room(bytes: &mut Vec<u8>, more: usize, most: usize, held: &mut Held) -> Result<(), Problem> {
    let needed = bytes.len() + more;
    if needed <= bytes.capacity() {
        return Ok(());
    }
    let capacity = (bytes.capacity() * 3 / 2).max(FIRST_BYTES).min(most).max(needed);
    held.grow_to(capacity as u64).map_err(Problem::from)?;
    bytes.reserve_exact(capacity - bytes.len());
    Ok(())
}

/// Discards what a client still sends, for a moment.
pub(super) async fn discard(body: &mut Incoming) {
    let mut left = DISCARDED;
    let all = async {
        while let Some(Ok(frame)) = from_client(body.frame()).await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // A client that sends nothing more gets its answer after that.
    let _ = timeout(DISCARDED_FOR, all).await;
}

/// The approximate memory of a parsed JSON value: its place in a list or an object, and the first
/// capacity of its own.
const VALUE_BYTES: usize = 256;

/// Puts the memory of the parsed body on the account. A body of more than the whole share is
/// refused: a retry would never succeed.
pub(super) fn hold_values(body: &[u8], held: &mut Held) -> Result<(), Problem> {
    let weight = weight(body);
    if weight > held.share() {
        return Err(Problem::TooManyValues {
            most: held.share().saturating_sub(body.len() as u64) / VALUE_BYTES as u64,
        });
    }
    Ok(held.grow_to(weight)?)
}

/// Returns the memory of a parsed body: its text and, for an object, its values. An array is parsed
/// item by item.
fn weight(body: &[u8]) -> u64 {
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    let values = if is_object { values(body) } else { 0 };
    (body.len() + values * VALUE_BYTES) as u64
}

/// Returns an upper bound of the number of JSON values: each but the first follows one of these
/// characters, itself or its name. Within strings they mean nothing.
fn values(body: &[u8]) -> usize {
    let (mut count, mut quoted, mut escaped) = (1, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'{' | b'[' | b',' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_weighs_its_values_and_what_stands_in_strings_is_none() {
        for (body, values) in
            [(r#"{"a":1}"#, 2), (r#"{"a":[1,2,[]]}"#, 6), (r#"{"a":"[,{\",["}"#, 2), (r#"{"a\\":[0,0]}"#, 4)]
        {
            assert_eq!(weight(body.as_bytes()), (body.len() + values * VALUE_BYTES) as u64, "{body}");
        }
        assert_eq!(weight(b"[1,2,3]"), 7);
    }
}
