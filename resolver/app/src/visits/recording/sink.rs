//! Where blocks of visits are written.

/// Writes blocks of visits.
///
/// The spool's thread calls it, and with [`Flush::Turn`](super::Flush::Turn) all listeners' threads
/// do. It must not panic.
pub trait BlockSink: Send + Sync {
    /// Writes a block, which [`visits::read_block`] reads. `count` is the number of its visits, and
    /// `span` the times of the first and the last, in microseconds since 1970.
    ///
    /// A block that cannot be written is dropped. The implementation counts its visits as dropped.
    fn write(&self, block: &[u8], count: u32, span: (i64, i64));
}

/// The sink of a process that keeps no visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoSink;

impl BlockSink for NoSink {
    fn write(&self, _: &[u8], _: u32, _: (i64, i64)) {}
}
