//! Lists visits, the latest first: by page, or all of them.
//!
//! A list may have millions of visits. [`LinkService::list_visits`] counts them and finds the
//! beginning of the page; [`LinkService::next_visits`] reads a few at a time, with the texts and
//! links that their rows refer to.

mod reader;
mod views;
mod windows;

use std::sync::Arc;

use jiff::Timestamp;
use links::{api_key::Grant, scope::Scope};
use visits::{Day, OrphanKind, PlaceText, TimeRange, VisitId};

use crate::{AppError, FieldErrors, LinkService, authorize::require, visit_subjects::VisitsOf};
use reader::{Reader, Selection};
pub(crate) use views::Known;

/// Maximum number of visits that [`LinkService::next_visits`] returns. Each has up to 7 KB of text.
pub const VISITS_READ: usize = 250;
const SECOND: i64 = 1_000_000;

/// A request for visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListVisits {
    /// The visits' subject.
    pub of: VisitsOf,
    /// The earliest second.
    pub start: Option<Timestamp>,
    /// The latest second, which is included.
    pub end: Option<Timestamp>,
    /// The number of the page, from 1.
    pub page: u64,
    /// Visits on a page; `None` for all, on one page.
    pub per_page: Option<u64>,
    /// Whether visits of bots are left out.
    pub people_only: bool,
}

/// A visit. Its texts are shared with other visits.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitView {
    /// The page that the visitor came from; empty if unknown.
    pub referrer: Arc<str>,
    /// When it was.
    pub at: Timestamp,
    /// The user agent; empty if unknown.
    pub user_agent: Arc<str>,
    /// Where the visitor was, if known.
    pub place: Option<Arc<PlaceText>>,
    /// Whether a bot made it.
    pub is_bot: bool,
    /// The URL that was requested; `None` if it is not known any more.
    pub visited_url: Option<Arc<str>>,
    /// The URL that the visitor was redirected to; `None` if to none, or if it is not known any
    /// more.
    pub redirect_url: Option<Arc<str>>,
    /// The kind, if no link redirected the visit.
    pub orphan: Option<OrphanKind>,
}

/// A list of visits that is being read.
pub struct ListedVisits {
    reader: Reader,
    known: Known,
    /// The number of visits on all pages.
    pub total: u64,
}

impl LinkService {
    /// Begins a list of visits that a key sees. `wrong` holds the parameters that the adapter could
    /// not read.
    pub async fn list_visits(
        &self,
        request: ListVisits,
        wrong: FieldErrors,
        by: &Grant,
    ) -> Result<ListedVisits, AppError> {
        require(by, Scope::Visits)?;
        let subjects = self.visit_subjects(&request.of, by).await?;
        wrong.finish()?;
        let now = self.domain_cache.now();
        let range = range_of(request.start, request.end, now);
        let selection = Selection { range, people_only: request.people_only };
        let skip = request.per_page.map_or(0, |size| request.page.saturating_sub(1).saturating_mul(size));
        let _turn = self.turns.queries.take(by.id).await?;
        let size = request.per_page.unwrap_or(u64::MAX);
        let reader = Reader::open(self.visits.clone(), &subjects, selection, (skip, size)).await?;
        Ok(ListedVisits { total: reader.total, reader, known: Known::default() })
    }

    /// Reads the next visits of a page, at most [`VISITS_READ`]; none at its end.
    pub async fn next_visits(
        &self,
        listed: &mut ListedVisits,
        by: &Grant,
    ) -> Result<Vec<VisitView>, AppError> {
        let most = usize::try_from(listed.reader.left).unwrap_or(usize::MAX).min(VISITS_READ);
        if most == 0 {
            return Ok(Vec::new());
        }
        let _turn = self.turns.queries.take(by.id).await?;
        let rows = listed.reader.next(most).await?;
        self.views(&rows, &mut listed.known).await
    }
}

/// Returns the range of two seconds that are both included. Without an end it reaches into
/// tomorrow, because clocks of resolvers differ.
pub(crate) fn range_of(start: Option<Timestamp>, end: Option<Timestamp>, now: Timestamp) -> TimeRange {
    let second = |at: Timestamp| at.as_microsecond().div_euclid(SECOND) * SECOND;
    let first = VisitId::from_stored(0).micros();
    let last = Day::of(now.as_microsecond()).next().next().start();
    TimeRange {
        from: start.map_or(first, second).max(first),
        before: end.map_or(last, |end| second(end) + SECOND),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_seconds_of_a_range_are_included() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let micros = |text: &str| at(text).as_microsecond();
        let now = at("2026-11-25T10:00:00Z");
        let range = range_of(Some(at("2026-11-01T10:00:00.9Z")), Some(at("2026-11-02T10:00:00.1Z")), now);
        let expected =
            TimeRange { from: micros("2026-11-01T10:00:00Z"), before: micros("2026-11-02T10:00:01Z") };
        assert_eq!(range, expected);
        let all = range_of(None, None, now);
        let expected =
            TimeRange { from: micros("2020-01-01T00:00:00Z"), before: micros("2026-11-27T00:00:00Z") };
        assert_eq!(all, expected);
        assert_eq!(range_of(Some(Timestamp::MIN), Some(Timestamp::MAX), now).from, all.from);
    }
}
