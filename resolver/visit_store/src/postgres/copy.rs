//! Rows of visits in COPY's binary format, as described in Postgres' manual.

use bytes::{BufMut as _, Bytes, BytesMut};
use codes::LinkId;
use visits::VisitRow;

/// The statement, with the columns in the order of [`encode`].
pub(super) const COPY: &str = "COPY visit (link_id, id, user_agent, referrer, urls, place, address, visitor, domain, \
     language, flags, rule) FROM STDIN (FORMAT binary)";

/// Start of the format: signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Number of columns in a row.
const COLUMNS: i16 = 12;
/// Bytes of a row: the number of columns, and each column after its length.
const ROW_BYTES: usize = 2 + 12 * 4 + 7 * 8 + 3 * 4 + 2 * 2;

/// Encodes all rows.
pub(super) fn encode(rows: &[VisitRow]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER.len() + rows.len() * ROW_BYTES + 2);
    out.put_slice(HEADER);
    rows.iter().for_each(|row| put(&mut out, row));
    out.put_i16(-1);
    out.freeze()
}

fn put(out: &mut BytesMut, row: &VisitRow) {
    out.put_i16(COLUMNS);
    let wide = [
        row.link.map_or(0, LinkId::get),
        row.id.get(),
        row.user_agent.get(),
        row.referrer.get(),
        row.urls.get(),
        row.place.get(),
        row.address.get(),
    ];
    for value in wide {
        out.put_i32(8);
        out.put_i64(value);
    }
    for value in [row.visitor, domain_number(row), row.language.get()] {
        out.put_i32(4);
        out.put_i32(value);
    }
    for value in [row.flags.get(), i16::from(row.rule)] {
        out.put_i32(2);
        out.put_i16(value);
    }
}

/// Returns the number of a row's domain as it is stored. Domains are numbered from 0, and there are
/// at most some thousands.
pub(super) fn domain_number(row: &VisitRow) -> i32 {
    i32::try_from(row.domain.get()).unwrap_or(0)
}
