//! Segments of the spool, damaged and forged.
//!
//! The first byte of the input chooses what the rest is:
//!
//! - `r`: the content of a segment;
//! - `f`: the same, and the checksums behind each magic are made to match first, so that lengths
//!   and compressed bytes of every kind are reached;
//! - `m`: a valid spool of several segments, and damage. Bytes up to the first one above 127 are
//!   the lengths of its blocks. After it, each three bytes are a damage: a place (two bytes, the
//!   first of which also chooses the segment) and a byte that is added there. A byte of 0 cuts the
//!   segment off at that place.
//!
//! 1. Opening and reading never fail and never panic, and what is found is counted right.
//! 2. Numbers ascend. What is appended afterwards has a number of its own, and is read back.
//! 3. Reading in small steps gives the same blocks as reading at once.
//! 4. Every block that no damage touches is read as it was written, and no other block is.
//! 5. A block is at most as long as [`BLOCK_MAX`].
#![no_main]

use std::{cell::RefCell, fs, path::Path};

use libfuzzer_sys::fuzz_target;
use spool::{BLOCK_MAX, Block, Limits, OwnedBlock, Spool};
use tempfile::TempDir;

/// Small segments, so that a few blocks fill several.
const LIMITS: Limits = Limits { segment_bytes: 400, total_bytes: 1 << 26 };
const BLOCKS_MAX: usize = 24;
/// The form of a block, which is fixed: see `resolver/spool/src/block.rs`.
const MAGIC: &[u8] = b"SMB\x01";
const HEADER: usize = 48;
const STORED_AT: usize = 20;
const CHECKED: usize = 40;
const RAW: u32 = 1 << 31;

thread_local! {
    /// The folder of all runs: the identity of a spool is written once.
    static FOLDER: RefCell<TempDir> =
        RefCell::new(tempfile::tempdir().expect("the folder for temporary files is writable"));
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    FOLDER.with_borrow(|folder| {
        let folder = folder.path();
        segments(folder).iter().for_each(|(path, _)| fs::remove_file(path).expect("it is ours"));
        match kind {
            b'm' => check_damaged(folder, rest),
            b'f' => check_any(folder, &with_checksums(rest)),
            _ => check_any(folder, rest),
        }
    });
});

/// Returns all segments in order, with their contents.
fn segments(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("it is ours").map(|entry| entry.expect("it is ours").path());
    let mut found: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "segment")).collect();
    found.sort();
    found.into_iter().map(|path| (path.clone(), fs::read(path).expect("it is ours"))).collect()
}

fn open(folder: &Path) -> Spool {
    Spool::open(folder, LIMITS).expect("a damaged segment is no error")
}

fn read(spool: &mut Spool) -> Vec<OwnedBlock> {
    spool.reader.next(0, usize::MAX, usize::MAX).expect("a damaged segment is no error")
}

fn check_any(folder: &Path, content: &[u8]) {
    fs::write(folder.join("0000000000000000.segment"), content).expect("it is ours");
    let found = check_spool(folder, content.len() as u64);
    assert!(found.iter().all(|block| block.bytes.len() <= BLOCK_MAX));
}

/// Checks a spool whose content is unknown, of `len` bytes in all. Returns what was read.
fn check_spool(folder: &Path, len: u64) -> Vec<OwnedBlock> {
    let mut spool = open(folder);
    let found = read(&mut spool);
    let events: u64 = found.iter().map(|block| u64::from(block.count)).sum();
    assert_eq!((spool.gauge.read().blocks, spool.gauge.events()), (found.len() as u64, events));
    assert!(spool.opened.cut_bytes + spool.opened.damaged_bytes <= len);
    assert_eq!(spool.gauge.read().bytes, len - spool.opened.cut_bytes);
    let last = found.last().map(|block| block.sequence);
    if last == Some(u64::MAX) {
        // No spool reaches the last number, which has no next one.
        return found;
    }
    assert!(found.is_sorted_by(|one, next| one.sequence < next.sequence));
    let mut steps = Vec::new();
    while let Some(block) = step(&mut spool, steps.last()) {
        steps.push(block);
    }
    assert!(steps == found, "in steps");
    if last.is_none_or(|last| last < u64::MAX >> 1) {
        check_append(folder, spool, &found, last);
    }
    found
}

fn step(spool: &mut Spool, after: Option<&OwnedBlock>) -> Option<OwnedBlock> {
    let mut blocks = spool.reader.next(after.map_or(0, |block| block.sequence + 1), 1, 1).expect("it was read before");
    assert!(blocks.len() <= 1);
    blocks.pop()
}

fn check_append(folder: &Path, mut spool: Spool, found: &[OwnedBlock], last: Option<u64>) {
    let bytes = b"after the damage";
    let number = spool.writer.append(&Block { bytes, count: 1, span: (1, 1) }).expect("there is room");
    assert!(last.is_none_or(|last| number > last), "{number:?} after {last:?}");
    drop(spool);
    let mut spool = open(folder);
    assert_eq!(spool.opened.cut_bytes, 0, "it was cut off before");
    let again = read(&mut spool);
    assert!(again[..found.len()] == *found && again.len() == found.len() + 1);
    assert_eq!((again[found.len()].sequence, &*again[found.len()].bytes), (number, &bytes[..]));
}

/// Makes the checksums behind each magic match.
fn with_checksums(content: &[u8]) -> Vec<u8> {
    let mut forged = content.to_vec();
    let mut place = 0;
    while let Some(found) = forged[place..].windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
        place += found;
        let Some(header) = forged.get(place..place + HEADER) else { break };
        let stored: [u8; 4] = header[STORED_AT..STORED_AT + 4].try_into().expect("four bytes");
        let stored = (u32::from_le_bytes(stored) & !RAW) as usize;
        let body = &forged[place + HEADER..];
        let body = body.get(..stored).unwrap_or(body);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKED]), body);
        forged[place + CHECKED..place + CHECKED + 4].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32c::crc32c(&forged[place..place + CHECKED + 4]);
        forged[place + CHECKED + 4..place + HEADER].copy_from_slice(&sum.to_le_bytes());
        place += HEADER;
    }
    forged
}

/// A block that was appended: in which segment, and where its bytes are there.
struct Placed {
    block: OwnedBlock,
    segment: usize,
    bytes: std::ops::Range<usize>,
}

fn check_damaged(folder: &Path, data: &[u8]) {
    let end = data.iter().position(|byte| *byte > 127).unwrap_or(data.len());
    let (lengths, damages) = (&data[..end.min(BLOCKS_MAX)], data.get(end + 1..).unwrap_or_default());
    let placed = append_all(folder, lengths);
    let mut segments = segments(folder);
    let mut is_whole = vec![true; placed.len()];
    for damage in damages.as_chunks::<3>().0 {
        let segment = usize::from(damage[0]) % segments.len().max(1);
        let Some((_, content)) = segments.get_mut(segment).filter(|(_, content)| !content.is_empty()) else {
            continue;
        };
        let place = (usize::from(damage[0]) + 256 * usize::from(damage[1])) % content.len();
        let is_hit: &dyn Fn(&Placed) -> bool = if damage[2] == 0 {
            content.truncate(place);
            &|one| one.bytes.end > place
        } else {
            content[place] = content[place].wrapping_add(damage[2]);
            &|one| one.bytes.contains(&place)
        };
        for (one, is_whole) in placed.iter().zip(&mut is_whole) {
            *is_whole &= !(one.segment == segment && is_hit(one));
        }
    }
    segments.iter().for_each(|(path, content)| fs::write(path, content).expect("it is ours"));
    let len: u64 = segments.iter().map(|(_, content)| content.len() as u64).sum();
    let found = check_spool(folder, len);
    for (one, is_whole) in placed.iter().zip(is_whole) {
        assert!(!is_whole || found.contains(&one.block), "{:?} is lost", one.block.sequence);
    }
    let is_ours = |block: &OwnedBlock| placed.iter().any(|one| one.block == *block);
    assert!(found.iter().all(is_ours), "a block was read that was never written");
}

fn append_all(folder: &Path, lengths: &[u8]) -> Vec<Placed> {
    let mut spool = open(folder);
    let mut placed: Vec<Placed> = Vec::new();
    let mut before = 0;
    for (length, number) in lengths.iter().zip(0_u32..) {
        // Odd lengths repeat a byte, which is stored compressed.
        let noise = number.wrapping_mul(2_654_435_761).to_le_bytes();
        let at = |place: usize| {
            if length % 2 == 1 { noise[0] } else { noise[place % 4].wrapping_add(place as u8) }
        };
        let bytes: Vec<u8> = (0..usize::from(*length)).map(at).collect();
        let span = (i64::from(number), -1);
        let sequence =
            spool.writer.append(&Block { bytes: &bytes, count: number, span }).expect("there is room");
        let after = spool.gauge.read().bytes;
        let len = usize::try_from(after - before).expect("a few hundred bytes");
        before = after;
        let last = placed.last().map(|one| (one.segment, one.bytes.end));
        let (segment, start) = match last {
            Some((segment, end)) if end as u64 + len as u64 > LIMITS.segment_bytes => (segment + 1, 0),
            Some(last) => last,
            None => (0, 0),
        };
        let block = OwnedBlock { sequence, count: number, span, bytes };
        placed.push(Placed { block, segment, bytes: start..start + len });
    }
    placed
}
