//! Entity tags of links: their versions in quotes.

use hyper::header::{ETAG, HeaderValue};
use links::Record;
use web::Answer;

/// Adds the version of a link to an answer.
pub(super) fn with_etag(mut answer: Answer, record: &Record) -> Answer {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", record.link.version())) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}

/// Returns the version that an entity tag stands for.
pub(super) fn version(tag: &[u8]) -> Option<u64> {
    std::str::from_utf8(tag).ok()?.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
