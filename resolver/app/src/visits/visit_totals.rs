//! Totals of visits: of links and tags in lists, and of everything.
//!
//! 1. Totals of links are columns beside the links, so that lists can be sorted by them. They
//!    follow the visits within seconds. Totals of tags are those of their links.
//! 2. A key counts the visits of links that it sees (see
//!    [`visit_subjects`](crate::visit_subjects)).

use std::collections::HashMap;

use codes::LinkId;
use jiff::SignedDuration;
use links::{Record, Tag, api_key::Grant, scope::Scope};
use store::{BATCH_MAX, VisitTotals};
use visit_store::{Columns, DayCounters};

use crate::{
    AppError, LinkService,
    authorize::{require, visible},
    list_links::VisitDays,
    list_visits::range_of,
    visit_subjects::VisitsOf,
};

/// A link that was created within this time has no visits that are stored.
const NEW_FOR: SignedDuration = SignedDuration::from_secs(2);

/// Totals of visits that a link redirected, and of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitsOverview {
    /// Visits that a link redirected.
    pub links: VisitTotals,
    /// Visits that no link redirected.
    pub orphans: VisitTotals,
}

impl LinkService {
    /// Returns how often links were visited, which the key sees. Links without visits may be left
    /// out.
    pub async fn visit_totals(
        &self,
        ids: &[LinkId],
        by: &Grant,
    ) -> Result<HashMap<LinkId, VisitTotals>, AppError> {
        let _turn = self.turns.writes.take(by.id).await?;
        self.read_totals(ids).await
    }

    /// Returns how often links were visited within days. Links without visits are left out.
    pub async fn visit_totals_in(
        &self,
        ids: &[LinkId],
        days: VisitDays,
        by: &Grant,
    ) -> Result<HashMap<LinkId, VisitTotals>, AppError> {
        require(by, Scope::Visits)?;
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.visits.link_totals(ids, days.days()).await?)
    }

    async fn read_totals(&self, ids: &[LinkId]) -> Result<HashMap<LinkId, VisitTotals>, AppError> {
        let mut totals = HashMap::new();
        for ids in ids.chunks(BATCH_MAX) {
            totals.extend(self.store.visit_totals(ids).await?);
        }
        Ok(totals)
    }

    /// Returns how often a link was visited, for an answer that shows it after a change.
    ///
    /// If the store does not answer, they are shown as zero: a committed write must not be reported
    /// as failed because of them. A new link takes no query.
    pub async fn visit_totals_of(&self, record: &Record) -> VisitTotals {
        let link = &record.link;
        if self.domain_cache.now().duration_since(link.created_at) < NEW_FOR {
            return VisitTotals::default();
        }
        let read = self.read_totals(&[link.id]).await;
        // The error was logged when it was converted.
        read.ok().and_then(|totals| totals.get(&link.id).copied()).unwrap_or_default()
    }

    /// Returns how often the visible links of tags were visited. Tags without visits may be left
    /// out.
    pub async fn tag_visit_totals(
        &self,
        tags: &[Tag],
        by: &Grant,
    ) -> Result<HashMap<Tag, VisitTotals>, AppError> {
        require(by, Scope::Read)?;
        let _turn = self.turns.queries.take(by.id).await?;
        let mut totals = HashMap::new();
        for tags in tags.chunks(BATCH_MAX) {
            totals.extend(self.store.tag_visit_totals(tags, &visible(by)).await?);
        }
        Ok(totals)
    }

    /// Counts all visits that a key sees.
    pub async fn visits_overview(&self, by: &Grant) -> Result<VisitsOverview, AppError> {
        require(by, Scope::Visits)?;
        if by.limits.own_links_only {
            let own = self.own_links(None, None, by).await?;
            let links = self.visit_totals(&own, by).await?.into_values().fold(VisitTotals::default(), sum);
            return Ok(VisitsOverview { links, ..VisitsOverview::default() });
        }
        let links = self.total_of(&VisitsOf::Links { domain: None }, by).await?;
        let orphans = self.total_of(&VisitsOf::Orphans { kind: None, domain: None }, by).await?;
        Ok(VisitsOverview { links, orphans })
    }

    async fn total_of(&self, of: &VisitsOf, by: &Grant) -> Result<VisitTotals, AppError> {
        let subjects = self.visit_subjects(of, by).await?;
        let days = range_of(None, None, self.domain_cache.now()).days();
        let _turn = self.turns.queries.take(by.id).await?;
        let (mut total, mut bots) = (0_i64, 0_i64);
        for subject in subjects {
            for DayCounters { counters, .. } in self.visits.spans(subject, days, Columns::default()).await? {
                total = total.saturating_add(counters.total);
                bots = bots.saturating_add(counters.bots);
            }
        }
        let [total, bots] = [total, bots].map(|count| u64::try_from(count).unwrap_or(0));
        Ok(VisitTotals { total, bots, last: None })
    }
}

fn sum(one: VisitTotals, other: VisitTotals) -> VisitTotals {
    VisitTotals {
        total: one.total.saturating_add(other.total),
        bots: one.bots.saturating_add(other.bots),
        last: one.last.max(other.last),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn totals_are_added_up_and_the_last_visit_is_the_latest() {
        let totals = |total, bots, last: Option<i64>| VisitTotals {
            total,
            bots,
            last: last.map(|at| Timestamp::from_second(at).unwrap()),
        };
        assert_eq!(sum(totals(1, 1, Some(5)), totals(2, 0, None)), totals(3, 1, Some(5)));
        assert_eq!(sum(totals(0, 0, Some(5)), totals(0, 0, Some(7))), totals(0, 0, Some(7)));
        assert_eq!(sum(totals(u64::MAX, 0, None), totals(2, 0, Some(7))), totals(u64::MAX, 0, Some(7)));
    }
}
