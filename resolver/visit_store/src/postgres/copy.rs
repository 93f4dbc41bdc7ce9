//! Rows of visits in COPY's binary format, as described in Postgres' manual.

use bytes::{BufMut as _, Bytes, BytesMut};
use visits::VisitRow;

/// Start of the format: signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The bytes of each column.
const LENS: [u8; 12] = [8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 2, 2];
/// Bytes of a row: the number of columns, and each column after its length.
const ROW_BYTES: usize = 2 + 12 * 4 + 7 * 8 + 3 * 4 + 2 * 2;

pub(super) fn statement() -> String {
    format!("COPY visit ({}) FROM STDIN (FORMAT binary)", VisitRow::COLUMNS)
}

pub(super) fn encode(rows: &[VisitRow]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER.len() + rows.len() * ROW_BYTES + 2);
    out.put_slice(HEADER);
    for row in rows {
        out.put_i16(12);
        for (number, len) in row.numbers().into_iter().zip(LENS) {
            out.put_i32(len.into());
            match len {
                8 => out.put_i64(number),
                4 => out.put_i32(i32::try_from(number).unwrap_or(0)),
                _ => out.put_i16(i16::try_from(number).unwrap_or(0)),
            }
        }
    }
    out.put_i16(-1);
    out.freeze()
}
