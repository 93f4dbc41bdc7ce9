//! Unused numbers of a span, computed from the ids of its links.

use codes::{KeyspaceIndex, LinkId};
use numbers::Span;

use super::Sql;
use crate::Result;

/// Ids per page of a scan.
const SCAN_PAGE: usize = 10_000;

/// Returns the next page of the ids of links from `next` to `end`, ascending.
pub(crate) async fn page_of_links(sql: &mut dyn Sql, next: i64, end: i64) -> Result<Vec<i64>> {
    let page = format!("SELECT id FROM link WHERE id >= $1 AND id < $2 ORDER BY id LIMIT {SCAN_PAGE}");
    sql.query(&page, &[next.into(), end.into()]).await?.iter().map(|row| row.int(0)).collect()
}

/// Gaps between stored ids, collected page by page.
pub(crate) struct Gaps {
    /// The first id that has not been examined.
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

    /// Adds the next page of stored ids, ascending. Returns whether it was the last page.
    pub(crate) fn page(&mut self, ids: &[i64]) -> bool {
        for id in ids {
            self.gap_until(*id);
            self.next = id + 1;
        }
        ids.len() < SCAN_PAGE
    }

    /// Adds the gap from the next unexamined id up to `id`, unless it is empty.
    fn gap_until(&mut self, id: i64) {
        let offset = u64::try_from(self.next - self.first).unwrap_or(0);
        let len = u64::try_from(id - self.next).unwrap_or(0);
        self.spans.extend(Span::new(self.start + offset, len).ok());
    }

    /// Returns the gaps, including the one after the last stored id.
    pub(crate) fn finish(mut self) -> Vec<Span> {
        self.gap_until(self.end);
        self.spans
    }
}
