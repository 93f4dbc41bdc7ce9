//! Orders of lists that no database knows: by code, which is computed from a link's number, and by
//! the visits of some days, which are counted in a store of their own.

use std::cmp::Reverse;

use codes::LinkId;
use jiff::Timestamp;
use links::{Filter, OrderBy, OrderField, Outline, PER_PAGE_MAX};
use store::VisitTotals;
use visit_store::Days;

use crate::{AppError, LinkService, list_links::VisitDays};

/// Sorts are stable, so links with the same value stay in the order of creation.
const OLDEST: OrderBy = OrderBy { field: OrderField::DateCreated, descending: false };

impl LinkService {
    /// Outlines a page of a list. The visits of some days count in the orders by visits.
    pub(super) async fn outline(
        &self,
        filter: &Filter,
        code: Option<LinkId>,
        visits_in: Option<VisitDays>,
    ) -> Result<Outline, AppError> {
        let OrderBy { field, descending } = filter.order;
        let is_by_visits = matches!(field, OrderField::Visits | OrderField::NonBotVisits);
        let days = visits_in.filter(|_| is_by_visits).map(VisitDays::days);
        if days.is_none() && field != OrderField::Id {
            return self.read_outline(filter, code).await;
        }
        match (self.whole(filter, code).await?, days) {
            (Some(ids), _) => self.sorted(filter, ids, days).await,
            (None, Some(days)) if descending => self.most_visited(filter, code, days).await,
            (None, _) => Err(too_long()),
        }
    }

    /// Lists all links of a filter by their creation; `None` if they do not fit on a page.
    async fn whole(&self, filter: &Filter, code: Option<LinkId>) -> Result<Option<Vec<LinkId>>, AppError> {
        let (page, per_page, count_max) = (1, Some(PER_PAGE_MAX), Some(PER_PAGE_MAX + 1));
        let whole = Filter { order: OLDEST, page, per_page, count_max, ..filter.clone() };
        let Outline { ids, total, .. } = self.read_outline(&whole, code).await?;
        Ok(Some(ids).filter(|_| total <= PER_PAGE_MAX))
    }

    async fn sorted(
        &self,
        filter: &Filter,
        mut ids: Vec<LinkId>,
        days: Option<Days>,
    ) -> Result<Outline, AppError> {
        let order = filter.order;
        // Reversed twice, so that links with the same value stay in their order.
        if order.descending {
            ids.reverse();
        }
        match days {
            None => {
                let mut entries = self.store.outlines_of(&ids).await?;
                entries.sort_by_cached_key(|entry| self.lookup.name(entry.id, entry.slug.as_ref()));
                ids = entries.into_iter().map(|entry| entry.id).collect();
            }
            Some(days) => {
                let totals = self.visits.link_totals(&ids, days).await?;
                ids.sort_by_key(|id| totals.get(id).map_or(0, |totals| counted(totals, order)));
            }
        }
        if order.descending {
            ids.reverse();
        }
        let total = ids.len() as u64;
        Ok(Outline { ids: page_of(ids, filter).collect(), total, is_counted: true })
    }

    /// Lists the links with visits on some days, and behind them the others, which may be any
    /// number, in the order of creation. At most a page of links may have been visited since the
    /// first day. A link whose first visit on these days was stored a few seconds ago may still be
    /// among the others.
    async fn most_visited(
        &self,
        filter: &Filter,
        code: Option<LinkId>,
        days: Days,
    ) -> Result<Outline, AppError> {
        let since = Timestamp::from_microsecond(days.first.start()).ok();
        let visited = Filter { visited_since: since, ..filter.clone() };
        let mut ids = self.whole(&visited, code).await?.ok_or_else(too_long)?;
        let totals = self.visits.link_totals(&ids, days).await?;
        let count = |id: &LinkId| totals.get(id).map_or(0, |totals| counted(totals, filter.order));
        ids.retain(|id| count(id) > 0);
        ids.sort_by_key(|id| Reverse(count(id)));
        let others = Filter { order: OLDEST, listed_before: ids.clone(), ..filter.clone() };
        let Outline { ids: others, total, is_counted } = self.read_outline(&others, code).await?;
        let total = total + ids.len() as u64;
        let total = if is_counted { total } else { total.max(PER_PAGE_MAX + 1) };
        Ok(Outline { ids: page_of(ids, filter).chain(others).collect(), total, is_counted })
    }

    async fn read_outline(&self, filter: &Filter, code: Option<LinkId>) -> Result<Outline, AppError> {
        let outline = self.store.outline(filter, code).await;
        outline.map_err(|error| match error.is_timeout() && *filter != filter.of_all() {
            true => AppError::SlowList,
            false => error.into(),
        })
    }
}

fn too_long() -> AppError {
    let expected = "choose another order or a shorter period, or filter the list";
    AppError::invalid("orderBy", format!("sorts at most {PER_PAGE_MAX} links: {expected}"))
}

/// Returns the visits that count in an order.
fn counted(totals: &VisitTotals, order: OrderBy) -> u64 {
    if order.field == OrderField::NonBotVisits { totals.non_bots() } else { totals.total }
}

/// Returns the links on a page of the filter.
fn page_of(ids: Vec<LinkId>, filter: &Filter) -> impl Iterator<Item = LinkId> {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let per_page = filter.per_page.unwrap_or(PER_PAGE_MAX);
    let first = (filter.page - 1).saturating_mul(per_page);
    ids.into_iter().skip(count(first)).take(count(per_page))
}
