//! Blocks: the unit that is appended, checked and read.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

/// Maximum number of bytes in a block, before compression.
pub const BLOCK_MAX: usize = 1 << 20;
pub(crate) const HEADER: usize = 48;
/// The first bytes of a block, with the format's version as the last one.
pub(crate) const MAGIC: [u8; 4] = *b"SMB\x01";
/// Marks bytes that are stored as they are, because compression does not shrink them.
const RAW: u32 = 1 << 31;

/// Events to append.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The events, in a form that the spool does not know.
    pub bytes: &'a [u8],
    /// The number of events.
    pub count: u32,
    /// The times of the first and the last event, in microseconds since 1970.
    pub span: (i64, i64),
}

/// A block that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBlock {
    /// The number of the block in its spool.
    pub sequence: u64,
    /// The number of events.
    pub count: u32,
    /// The times of the first and the last event, in microseconds since 1970.
    pub span: (i64, i64),
    /// The events.
    pub bytes: Vec<u8>,
}

/// The header of a block.
///
/// | bytes | field |
/// |---|---|
/// | 0–3 | magic |
/// | 4–11 | sequence |
/// | 12–15 | number of events |
/// | 16–19 | length of the events |
/// | 20–23 | length as stored; the highest bit marks bytes that are not compressed |
/// | 24–39 | times of the first and the last event |
/// | 40–43 | CRC-32C of the header before, and of the stored bytes |
/// | 44–47 | CRC-32C of the header before: lengths are trusted only with it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    pub(crate) count: u32,
    pub(crate) len: usize,
    pub(crate) stored: usize,
    pub(crate) span: (i64, i64),
    is_raw: bool,
    checksum: u32,
}

impl Header {
    /// Reads a header. `None`: it is damaged, or not one.
    pub(crate) fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let u32_at = |place: usize| {
            u32::from_le_bytes(bytes[place..place + 4].try_into().expect("four bytes are four bytes"))
        };
        let u64_at = |place: usize| {
            u64::from_le_bytes(bytes[place..place + 8].try_into().expect("eight bytes are eight bytes"))
        };
        if bytes[..4] != MAGIC || crc32c::crc32c(&bytes[..44]) != u32_at(44) {
            return None;
        }
        let (len, stored) = (usize::try_from(u32_at(16)).ok()?, usize::try_from(u32_at(20) & !RAW).ok()?);
        // A header with a matching checksum was written by this code, or another release's.
        if len > BLOCK_MAX || stored > get_maximum_output_size(BLOCK_MAX) {
            return None;
        }
        Some(Self {
            sequence: u64_at(4),
            count: u32_at(12),
            len,
            stored,
            span: (u64_at(24).cast_signed(), u64_at(32).cast_signed()),
            is_raw: u32_at(20) & RAW != 0,
            checksum: u32_at(40),
        })
    }

    /// Decodes the stored bytes. `None`: they are damaged.
    pub(crate) fn decode(&self, header: &[u8; HEADER], stored: &[u8]) -> Option<Vec<u8>> {
        if checksum(header, stored) != self.checksum {
            return None;
        }
        if self.is_raw {
            return (stored.len() == self.len).then(|| stored.to_vec());
        }
        let mut bytes = vec![0; self.len];
        (decompress_into(stored, &mut bytes).ok()? == self.len).then_some(bytes)
    }
}

/// Returns the checksum of a block: of its header without checksums, and of its stored bytes.
fn checksum(header: &[u8], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..40]), stored)
}

/// Encodes a block into `out`, whose former content is replaced. `out` keeps its memory.
pub(crate) fn encode(block: &Block<'_>, sequence: u64, out: &mut Vec<u8>) {
    let room = get_maximum_output_size(block.bytes.len());
    out.clear();
    out.resize(HEADER + room, 0);
    let compressed = compress_into(block.bytes, &mut out[HEADER..]).ok();
    let (stored, mark) = match compressed.filter(|len| *len < block.bytes.len()) {
        Some(len) => (len, 0),
        None => {
            out[HEADER..HEADER + block.bytes.len()].copy_from_slice(block.bytes);
            (block.bytes.len(), RAW)
        }
    };
    out.truncate(HEADER + stored);
    let len = |len: usize| u32::try_from(len).expect("a block has at most BLOCK_MAX bytes");
    let (header, stored_bytes) = out.split_at_mut(HEADER);
    header[..4].copy_from_slice(&MAGIC);
    header[4..12].copy_from_slice(&sequence.to_le_bytes());
    header[12..16].copy_from_slice(&block.count.to_le_bytes());
    header[16..20].copy_from_slice(&len(block.bytes.len()).to_le_bytes());
    header[20..24].copy_from_slice(&(len(stored) | mark).to_le_bytes());
    header[24..32].copy_from_slice(&block.span.0.to_le_bytes());
    header[32..40].copy_from_slice(&block.span.1.to_le_bytes());
    let sum = checksum(header, stored_bytes);
    header[40..44].copy_from_slice(&sum.to_le_bytes());
    let sum = crc32c::crc32c(&header[..44]);
    header[44..].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> Option<(Header, Vec<u8>)> {
        let (head, stored) = bytes.split_first_chunk::<HEADER>()?;
        let header = Header::read(head)?;
        Some((header, header.decode(head, stored.get(..header.stored)?)?))
    }

    proptest! {
        #[test]
        fn a_block_comes_out_as_it_went_in(
            bytes in prop::collection::vec(0_u8..4, 0..3_000), noise in any::<bool>(),
            sequence in any::<u64>(), count in any::<u32>(), span in any::<(i64, i64)>(),
        ) {
            let bytes: Vec<u8> = bytes.iter().zip(0_u32..)
                .map(|(byte, place)| if noise { place.wrapping_mul(2_654_435_761).to_le_bytes()[3] } else { *byte })
                .collect();
            let mut out = vec![9; 5];
            encode(&Block { bytes: &bytes, count, span }, sequence, &mut out);
            let (header, read) = decode(&out).unwrap();
            prop_assert_eq!(read, bytes);
            prop_assert_eq!((header.sequence, header.count, header.span), (sequence, count, span));
        }

        #[test]
        fn no_flipped_bit_goes_unnoticed(flipped in 0_usize..8 * 400) {
            let text = b"visit visit visit 12345".repeat(20);
            let mut out = Vec::new();
            encode(&Block { bytes: &text, count: 3, span: (1, 2) }, 7, &mut out);
            let place = flipped / 8 % out.len();
            out[place] ^= 1 << (flipped % 8);
            prop_assert_eq!(decode(&out), None);
        }
    }
}
