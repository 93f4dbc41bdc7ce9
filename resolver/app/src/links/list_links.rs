//! Lists links: first the ids of a page, then the links a few at a time.
//!
//! A page may have ten thousand links of many kilobytes. [`LinkService::list_links`] returns its
//! ids and sizes; [`links::pieces`] splits them into pieces of bounded memory, which are read one
//! after another.

use std::{collections::BTreeSet, sync::Arc};

use codes::LinkId;
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use links::{
    Domain, DomainId, ExternalId, Filter, LongUrl, OrderBy, OrderField, Outline, Outlined, PER_PAGE,
    PER_PAGE_MAX, Record, TAGS_MAX, Tag, api_key::Grant, nfc, scope::Scope,
};
use visit_store::Days;
use visits::Day;

use crate::{Answer, AppError, FieldErrors, LinkService, authorize::require};

const ORDERS: &str = "expected dateCreated, shortCode, longUrl, title, visits, nonBotVisits or lastVisit, \
     with -ASC or -DESC behind it";

/// A request for a page of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListLinks {
    /// The criteria that need no name looked up. The first page is also 0; without a number of
    /// links a page has [`PER_PAGE`] of them, and at most [`PER_PAGE_MAX`].
    pub filter: Filter,
    /// The links' domain.
    pub domain: Option<String>,
    /// The name of the API keys that created the links.
    pub api_key_name: Option<String>,
    /// The caller's own id of the link.
    pub external_id: Option<String>,
    /// Tags that the links have.
    pub tags: Vec<String>,
    /// Tags that the links must not have.
    pub exclude_tags: Vec<String>,
    /// A field, optionally followed by `-ASC` or `-DESC`.
    pub order_by: Option<String>,
    /// The first and the last day of the visits that count in the order by visits; `None` for all
    /// visits. The key needs the scope `visits`.
    pub visits_in: Option<VisitDays>,
}

/// Days, counted in UTC as the counters of visits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitDays {
    /// The first day.
    pub first: Date,
    /// The last day.
    pub last: Date,
}

impl VisitDays {
    pub(crate) fn days(self) -> Days {
        let day = |date: Date| {
            let start = date.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |start| start.timestamp());
            Day::of(start.as_microsecond())
        };
        Days { first: day(self.first), end: day(self.last).next() }
    }
}

/// A page of a list, whose links have not been read yet.
pub struct ListedLinks {
    filter: Filter,
    /// Ids and sizes of the page's links.
    pub entries: Vec<Outlined>,
    /// The number of links on all pages, or so many as are surely on them.
    pub total: u64,
    /// Whether all of them were counted.
    pub is_counted: bool,
    /// The number of the page, from 1.
    pub page: u64,
    /// The number of links on a page.
    pub per_page: u64,
}

impl ListedLinks {
    /// Returns the number of links for a client that goes from page to page up to the last one.
    /// Where not all of them were counted, another page may be behind each full one.
    pub fn total_of_pages(&self) -> u64 {
        if self.is_counted || self.entries.is_empty() {
            return self.total;
        }
        let (before, len) = (self.page.saturating_sub(1), self.entries.len() as u64);
        let known = before.saturating_mul(self.per_page).saturating_add(len);
        self.total.max(known.saturating_add(u64::from(len == self.per_page)))
    }
}

impl LinkService {
    /// Lists a page of the links that a key sees.
    pub fn list_links<'a>(
        &'a self,
        request: ListLinks,
        wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, ListedLinks> {
        Box::pin(async move {
            require(by, Scope::Read)?;
            if request.visits_in.is_some() {
                require(by, Scope::Visits)?;
            }
            let names = (request.domain.clone(), request.api_key_name.clone());
            let visits_in = request.visits_in;
            let external_id = request.external_id.clone();
            let mut filter = filter(request, wrong)?;
            // No link has an invalid id, and no entry an empty digest.
            let digest = |id: String| ExternalId::parse(&id).map(|id| id.digest(by.id)).unwrap_or_default();
            filter.external_id = external_id.map(digest);
            let (page, per_page) = (filter.page, filter.per_page.unwrap_or(PER_PAGE_MAX));
            let listed = |filter, entries, total, is_counted| ListedLinks {
                filter,
                entries,
                total,
                is_counted,
                page,
                per_page,
            };
            if !self.narrow(names, by, &mut filter).await? {
                return Ok(listed(filter, Vec::new(), 0, true));
            }
            let _turn = self.turns.queries.take(by.id).await?;
            let code = self.resolve_search(&mut filter);
            let Outline { ids, total, is_counted } = self.outline(&filter, code, visits_in).await?;
            Ok(listed(filter, self.store.outlines_of(&ids).await?, total, is_counted))
        })
    }

    /// Returns the current sizes of a piece's links. Call it just before the piece is read: while a
    /// client was slow or a permit was awaited, the links may have grown a thousandfold.
    pub async fn weigh(&self, entries: &[Outlined], by: &Grant) -> Result<Vec<Outlined>, AppError> {
        let ids: Vec<LinkId> = entries.iter().map(|entry| entry.id).collect();
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.store.outlines_of(&ids).await?)
    }

    /// Reads the links of a piece. Links that were deleted, restored or moved since the page was
    /// listed are left out.
    pub fn read_piece<'a>(
        &'a self,
        listed: &'a ListedLinks,
        entries: &'a [Outlined],
        by: &'a Grant,
    ) -> Answer<'a, Vec<Record>> {
        Box::pin(async move {
            let ids: Vec<LinkId> = entries.iter().map(|entry| entry.id).collect();
            let _turn = self.turns.queries.take(by.id).await?;
            let mut records = self.store.records(&ids).await?;
            let is_listed = |record: &Record| {
                let is_there = listed.filter.domain.is_none_or(|domain| domain == record.link.domain());
                is_there && by.sees(&record.link) && record.link.is_deleted() == listed.filter.deleted
            };
            records.retain(is_listed);
            Ok(records)
        })
    }

    /// Narrows a filter to the requested domain and API key, and to the limits of the caller's key.
    /// Returns `false` if no link can match.
    pub(crate) async fn narrow(
        &self,
        (domain, api_key_name): (Option<String>, Option<String>),
        by: &Grant,
        filter: &mut Filter,
    ) -> Result<bool, AppError> {
        if let Some(name) = domain {
            let Some(domain) = self.domain_cache.find(&name).await? else { return Ok(false) };
            filter.domain = Some(domain);
        }
        if let Some(own) = by.limits.domain {
            if filter.domain.is_some_and(|domain| domain != own) {
                return Ok(false);
            }
            filter.domain = Some(own);
        }
        if let Some(name) = api_key_name {
            let _turn = self.turns.writes.take(by.id).await?;
            let keys = self.store.list_api_keys().await?;
            let named: Vec<_> = keys.iter().filter(|key| key.name == name).map(|key| key.id).collect();
            // As in Shlink, a limited key cannot filter by other keys.
            if !by.limits.hides_links() || named.contains(&by.id) {
                filter.created_by = Some(named);
            }
        }
        if by.limits.own_links_only {
            filter.created_by = Some(vec![by.id]);
        }
        filter.sees_all = !by.limits.hides_links();
        Ok(true)
    }

    /// Adds the domains that a search finds to its filter, and returns the id of the code that it
    /// may be.
    pub(crate) fn resolve_search(&self, filter: &mut Filter) -> Option<LinkId> {
        let text = filter.search.as_deref()?;
        let (domains, code) = (self.domains_like(text), self.lookup.id_of(text));
        filter.search_domains = domains;
        code
    }

    /// Returns the domains whose names contain a text.
    fn domains_like(&self, text: &str) -> Vec<DomainId> {
        let text = nfc(&text.to_lowercase()).into_owned();
        let entries = self.domain_cache.entries();
        let others = entries.others().into_iter();
        let is_like = |domain: &&Arc<Domain>| {
            domain.authority.as_ref().is_some_and(|name| name.as_str().contains(&text))
        };
        let mut found: Vec<DomainId> = others.filter(is_like).map(|domain| domain.id).collect();
        found.extend(self.domain_cache.default_name().contains(&text).then_some(DomainId::DEFAULT));
        found
    }
}

/// Checks the criteria of a list that need no name looked up.
pub(crate) fn filter(request: ListLinks, mut wrong: FieldErrors) -> Result<Filter, AppError> {
    let order = wrong.note("orderBy", parse_order(request.order_by.as_deref()));
    let order = order.unwrap_or_default();
    for (name, tags) in [("tags", &request.tags), ("excludeTags", &request.exclude_tags)] {
        if tags.len() > TAGS_MAX {
            wrong.add(name, format!("expected at most {TAGS_MAX} tags"));
        }
    }
    let single = [&request.filter.search, &request.domain, &request.api_key_name];
    let texts = single.into_iter().flatten().chain(&request.tags).chain(&request.exclude_tags);
    let long_url = request.filter.long_url.as_ref().map(LongUrl::as_str);
    if texts.map(String::as_str).chain(long_url).any(|text| text.contains('\0')) {
        wrong.add("(the query)", "must not contain NUL");
    }
    wrong.finish_by_name()?;
    // No link has an invalid tag. It is kept as written, and matches nothing.
    let tags = |names: &[String]| {
        let tag = |name: &String| Tag::exactly(name).unwrap_or_else(|_| Tag::from_stored(name));
        names.iter().map(tag).collect::<BTreeSet<Tag>>().into_iter().collect()
    };
    Ok(Filter {
        tags: tags(&request.tags),
        exclude_tags: tags(&request.exclude_tags),
        // Links are stored with fractions of a second but shown without, so the whole second is
        // included.
        until: request.filter.until.map(whole_second),
        order,
        page: request.filter.page.max(1),
        per_page: Some(request.filter.per_page.unwrap_or(PER_PAGE).min(PER_PAGE_MAX)),
        ..request.filter
    })
}

/// Returns the end of a second that a client named, if it named no fraction.
pub(crate) fn whole_second(time: Timestamp) -> Timestamp {
    if time.subsec_nanosecond() != 0 {
        return time;
    }
    time.checked_add(SignedDuration::from_millis(999)).unwrap_or(time)
}

/// Parses an order. That by code has the field of the ids, which stand for codes in the store.
fn parse_order(text: Option<&str>) -> Result<OrderBy, String> {
    let Some(text) = text else { return Ok(OrderBy::default()) };
    let (field, direction) = text.split_once('-').unwrap_or((text, "ASC"));
    let descending = match direction {
        "ASC" => false,
        "DESC" => true,
        _ => return Err(ORDERS.to_owned()),
    };
    let field = match field {
        "dateCreated" => OrderField::DateCreated,
        "longUrl" => OrderField::LongUrl,
        "title" => OrderField::Title,
        "visits" => OrderField::Visits,
        "nonBotVisits" => OrderField::NonBotVisits,
        "lastVisit" => OrderField::LastVisit,
        "shortCode" => OrderField::Id,
        _ => return Err(ORDERS.to_owned()),
    };
    Ok(OrderBy { field, descending })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_from_page_to_page_comes_to_the_last_link() {
        let listed = |total, is_counted, page, len: usize| ListedLinks {
            filter: Filter::default(),
            entries: vec![Outlined { id: LinkId::from_stored(1), bytes: 0, slug: None }; len],
            total,
            is_counted,
            page,
            per_page: 10,
        };
        assert_eq!(listed(25, true, 3, 5).total_of_pages(), 25);
        assert_eq!(listed(100, false, 1, 10).total_of_pages(), 100);
        assert_eq!(listed(100, false, 10, 10).total_of_pages(), 101);
        assert_eq!(listed(100, false, 12, 3).total_of_pages(), 113);
        assert_eq!(listed(100, false, 13, 0).total_of_pages(), 100);
        assert_eq!(listed(0, true, 0, 0).total_of_pages(), 0);
    }

    #[test]
    fn an_order_names_a_field_and_a_direction() {
        let read = |text| parse_order(Some(text)).map(|order| (order.field, order.descending));
        assert_eq!(read("visits-DESC"), Ok((OrderField::Visits, true)));
        assert_eq!(read("nonBotVisits"), Ok((OrderField::NonBotVisits, false)));
        assert_eq!(read("shortCode-DESC"), Ok((OrderField::Id, true)));
        assert_eq!(read("visits-desc"), Err(ORDERS.to_owned()));
    }
}
