//! Which numbers of a range have no link, from the ids of those that have one.

use codes::{KeyspaceIndex, LinkId};
use numbers::Span;

/// Ids per page of a scan.
pub(crate) const SCAN_PAGE: usize = 10_000;

/// Collects the gaps between stored ids, page by page.
pub(crate) struct Gaps {
    /// The first id not looked at yet.
    pub(crate) next: i64,
    pub(crate) end: i64,
    first: i64,
    start: u64,
    spans: Vec<Span>,
}

impl Gaps {
    pub(crate) fn new(keyspace: KeyspaceIndex, span: Span) -> Self {
        let (first, end) = LinkId::range(keyspace, span);
        Self { next: first, end, first, start: span.start(), spans: Vec::new() }
    }

    /// Takes the next stored ids, ascending; whether that was all of them.
    pub(crate) fn page(&mut self, ids: &[i64]) -> bool {
        for id in ids {
            self.gap_until(*id);
            self.next = id + 1;
        }
        ids.len() < SCAN_PAGE
    }

    fn gap_until(&mut self, id: i64) {
        let offset = u64::try_from(self.next - self.first).unwrap_or(0);
        let len = u64::try_from(id - self.next).unwrap_or(0);
        self.spans.extend(Span::new(self.start + offset, len).ok());
    }

    pub(crate) fn finish(mut self) -> Vec<Span> {
        self.gap_until(self.end);
        self.spans
    }
}
