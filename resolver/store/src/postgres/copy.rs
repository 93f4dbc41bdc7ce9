//! Large batches by COPY: Postgres fills whole pages at a time, instead of checking for each row
//! whether its id is taken.
//!
//! 1. COPY fails as a whole if an id is taken, and stores nothing. The batch is then inserted like
//!    a small one. That is rare: a number belongs to one holder, and only a custom slug can have
//!    taken its id.
//! 2. COPY takes two round trips instead of one, so small batches do not gain by it.

use bytes::Bytes;
use jiff::Timestamp;
use links::NewLink;

/// Minimum number of links in a COPY batch. With fewer, the second round trip costs more than COPY
/// saves.
pub(super) const LINKS_MIN: usize = 500;

const COLUMNS: i16 = 8;
/// Start of the binary format: signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// End of the binary format.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// Length field of a NULL column.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// Version byte of the binary form of `jsonb`.
const JSONB_VERSION: u8 = 1;
/// Postgres' epoch, 2000-01-01, in microseconds since 1970.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// Encodes links with their serialized details, and this time as that of their creation, in COPY's
/// binary format, as described in Postgres' manual.
pub(super) fn rows(links: &[&NewLink], details: &[Option<String>], now: Timestamp) -> Bytes {
    let texts: usize = links.iter().map(|link| link.draft.long_url.as_str().len()).sum();
    let mut out = Vec::with_capacity(HEADER.len() + texts + 96 * links.len());
    out.extend_from_slice(HEADER);
    let now = (now.as_microsecond() - POSTGRES_EPOCH).to_be_bytes();
    for (link, details) in links.iter().zip(details) {
        let draft = &link.draft;
        out.extend_from_slice(&COLUMNS.to_be_bytes());
        put(&mut out, &[&link.id.get().to_be_bytes()]);
        put(&mut out, &[draft.long_url.as_str().as_bytes()]);
        put_text(&mut out, &[], draft.title.as_deref());
        put(&mut out, &[&[u8::from(draft.crawlable)]]);
        put(&mut out, &[&[u8::from(draft.forward_query)]]);
        put(&mut out, &[&draft.created_by.0.to_be_bytes()]);
        put_text(&mut out, &[JSONB_VERSION], details.as_deref());
        put(&mut out, &[&now]);
    }
    out.extend_from_slice(&TRAILER);
    out.into()
}

/// Appends a text column after the bytes of `before`, or NULL.
fn put_text(out: &mut Vec<u8>, before: &[u8], text: Option<&str>) {
    match text {
        Some(text) => put(out, &[before, text.as_bytes()]),
        None => out.extend_from_slice(&NULL),
    }
}

/// Appends a column: the length of all parts together, and then their bytes.
fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let len = i32::try_from(len).expect("what a link says is bounded far below");
    out.extend_from_slice(&len.to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}
