//! How much of a spool is not stored elsewhere yet.

use std::{fs::File, sync::Arc};

use crate::{Segment, Shared, folder::segment_path, scan::Blocks};

/// The part of a spool that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Blocks that are not stored elsewhere. Before the reader has told its position, those of the
    /// oldest segment all count.
    pub blocks: u64,
    /// Bytes of all segments on disk. A segment is removed once all of it is stored.
    pub bytes: u64,
    /// The bound of `bytes`.
    pub bytes_max: u64,
    /// The time of the first event that waits, in microseconds since 1970.
    pub oldest: Option<i64>,
}

/// Tells the backlog of a spool at any time, whatever its reader waits for; cheap to clone.
#[derive(Clone)]
pub struct BacklogGauge(pub(super) Arc<Shared>);

impl BacklogGauge {
    /// Returns what waits now.
    pub fn read(&self) -> Backlog {
        let state = self.0.state();
        let waiting = |segment: &Segment| {
            let stored = state.stored.saturating_sub(segment.first);
            segment.blocks.saturating_sub(stored)
        };
        Backlog {
            blocks: state.segments.iter().map(waiting).sum(),
            bytes: state.bytes(),
            bytes_max: self.0.limits.total_bytes,
            oldest: state.oldest,
        }
    }

    /// Returns how many events wait now. Reads the segment that is stored in part, if there is one;
    /// all of its events count if it cannot be read.
    pub fn events(&self) -> u64 {
        let (segments, stored) = {
            let state = self.0.state();
            (state.segments.clone(), state.stored)
        };
        let waiting = |segment: &Segment| {
            let end = segment.first.saturating_add(segment.blocks);
            match (segment.first >= stored, end <= stored) {
                (true, _) => segment.events,
                (false, true) => 0,
                (false, false) => self.events_from(segment, stored).unwrap_or(segment.events),
            }
        };
        segments.iter().map(waiting).sum()
    }

    /// Counts the events of a segment from a block on.
    fn events_from(&self, segment: &Segment, stored: u64) -> std::io::Result<u64> {
        let file = File::open(segment_path(&self.0.folder, segment.first))?;
        let mut blocks = Blocks::new(&file, 0, segment.bytes, segment.first);
        let mut events = 0;
        while let Some((block, _)) = blocks.next()? {
            events += if block.sequence >= stored { u64::from(block.count) } else { 0 };
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Block, Limits, Spool};

    fn open(folder: &Path) -> Spool {
        // Two blocks in each segment.
        Spool::open(folder, Limits { segment_bytes: 750, total_bytes: 4_000 }).unwrap()
    }

    fn append(spool: &mut Spool, at: i64) {
        let bytes: Vec<u8> =
            (0..300_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        spool.writer.append(&Block { bytes: &bytes, count: 2, span: (at, at + 1) }).unwrap();
    }

    fn on_disk(folder: &Path) -> u64 {
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
        let segments = files.filter(|file| file.path().extension().is_some_and(|name| name == "segment"));
        segments.map(|file| file.metadata().unwrap().len()).sum()
    }

    #[test]
    fn the_backlog_is_what_is_on_disk_whether_or_not_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path());
        assert_eq!((spool.gauge.read().blocks, spool.gauge.read().oldest), (0, None));
        (10..17).for_each(|at| append(&mut spool, at));
        let check = |spool: &Spool, blocks, oldest| {
            let read = spool.gauge.read();
            assert_eq!(spool.gauge.events(), 2 * blocks);
            assert_eq!((read.blocks, read.oldest), (blocks, oldest));
            assert_eq!((read.bytes, read.bytes_max), (on_disk(folder.path()), 4_000));
        };
        check(&spool, 7, Some(10));
        spool.reader.next(0, usize::MAX, 3).unwrap();
        check(&spool, 7, Some(10));
        // Three blocks are stored, and the batch after them is read and is not.
        spool.reader.release(3).unwrap();
        check(&spool, 4, Some(13));
        spool.reader.next(3, usize::MAX, 2).unwrap();
        check(&spool, 4, Some(13));
        drop(spool);
        let mut spool = open(folder.path());
        check(&spool, 5, Some(12));
        assert!(!spool.reader.continue_from(3));
        check(&spool, 4, Some(13));
        spool.reader.release(7).unwrap();
        check(&spool, 0, None);
        append(&mut spool, 30);
        check(&spool, 1, Some(30));
    }
}
