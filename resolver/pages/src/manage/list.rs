//! The list of links, with search, filters, order and pages; with `deleted=true` the trash.

use std::sync::Arc;

use app::{
    FieldErrors,
    list_links::{ListLinks, ListedLinks, PerPage, VisitDays, pieces},
};
use askama::Template;
use hyper::StatusCode;
use jiff::{Timestamp, tz::TimeZone};
use links::{Tag, scope::Scope};
use web::Answer;

use super::{
    PATH,
    chosen::{Choice, Done},
    paged::address,
    period::Period,
    qr_sheet,
    shown::ShownLink,
};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::PageError,
    form::Form,
    frame::{Frame, Place},
    locale::Locale,
    request::PageRequest,
    session::Session,
};

/// Links on a page, unless the query says otherwise.
const PER_PAGE: u64 = 50;
/// The numbers of links on a page that can be chosen.
const COUNTS: [u64; 3] = [10, PER_PAGE, 100];
/// The number of links at which the count of a list ends.
const COUNTED_MAX: u64 = 100_000;
/// Maximum number of tags to choose from. The others are found by the search.
const TAGS_MAX: usize = 300;
/// The fields of the query. Others would be repeated in the address of every tag.
const KNOWN: [&str; 10] =
    ["search", "tag", "domain", "order", "visits", "created", "ended", "count", "deleted", "page"];
/// The periods in which visits can be counted, and links can have been made.
const PERIODS: [Period; 5] = [Period::All, Period::Week, Period::Month, Period::ThisMonth, Period::LastMonth];
/// The orders that a list can have, with the texts that name them.
const ORDERS: [(&str, &str); 5] = [
    ("dateCreated-DESC", "order-newest"),
    ("dateCreated-ASC", "order-oldest"),
    ("visits-DESC", "order-visits"),
    ("title-ASC", "order-title"),
    ("longUrl-ASC", "order-long-url"),
];

#[derive(Template)]
#[template(path = "manage/list.html")]
pub(super) struct ListPage<'a> {
    frame: Frame<'a>,
    links: Vec<ShownLink>,
    extent: Extent,
    /// The fields of the query that the list knows.
    query: Form,
    tags: Vec<Tag>,
    domains: Vec<String>,
    is_trash: bool,
    orders: [(&'static str, &'static str); 5],
    counts: [u64; 3],
    /// The periods, with their names.
    periods: Vec<(&'static str, String)>,
    /// The chosen periods: that in which visits are counted, and that in which links were made.
    visits_in: Period,
    created_in: Period,
    may_count: bool,
    /// What the key may do with chosen links.
    may: May,
    /// What became of the last change of chosen links.
    pub(super) done: Done,
    /// A deleted link that can be restored.
    deleted: Option<Choice>,
}

/// How long a list is, and the page of it that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// The number of links, at most [`COUNTED_MAX`].
    total: u64,
    /// The number of the page, from 1.
    page: u64,
    per_page: u64,
    /// The number of links on the page.
    len: u64,
}

impl Extent {
    fn of(listed: &ListedLinks) -> Self {
        let ListedLinks { total, page, per_page, ref entries, .. } = *listed;
        Self { total, page, per_page, len: entries.len() as u64 }
    }

    /// Returns whether all links were counted.
    fn is_counted(self) -> bool {
        self.total < COUNTED_MAX
    }

    /// Returns the number of the last page that was counted.
    fn last(self) -> u64 {
        self.total.div_ceil(self.per_page).max(1)
    }

    /// Returns the page to show instead of one that does not exist.
    fn instead(self) -> Option<u64> {
        (self.page > self.last() && (self.is_counted() || self.len == 0)).then(|| self.last())
    }

    /// Returns whether there may be a page after this one. Where links were not counted, a full
    /// page may be the last one.
    fn has_more(self) -> bool {
        if self.is_counted() { self.page < self.last() } else { self.len >= self.per_page }
    }
}

/// What a key may do with chosen links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct May {
    edit: bool,
    delete: bool,
}

impl May {
    /// Returns whether there is anything to choose links for.
    fn change(self, is_trash: bool) -> bool {
        self.delete || (self.edit && !is_trash)
    }
}

impl ListPage<'_> {
    /// Returns the number of links as a text.
    fn total(&self) -> String {
        let (t, total) = (self.frame.t, &self.extent.total);
        if self.extent.is_counted() {
            t.count("count-links", total)
        } else {
            t.with("links-at-least", t.number(total))
        }
    }

    /// Returns the number of the page as a text, with that of the last one if it is known.
    fn place(&self) -> String {
        let (t, page) = (self.frame.t, self.frame.t.number(&self.extent.page));
        if self.extent.is_counted() {
            t.with_two("page-of", page, t.number(&self.extent.last()))
        } else {
            t.with("page-number", page)
        }
    }

    fn value(&self, name: &str) -> &str {
        self.query.get(name).unwrap_or("")
    }

    /// Returns the query of another page of this list.
    fn page_query(&self, page: u64) -> String {
        self.query.query_with("page", &page.to_string())
    }

    /// Returns the query of the links that have a tag too, from the first page on.
    fn tag_query(&self, tag: &str) -> String {
        Form::parse(self.query.without(&["page"]).as_bytes()).query_with("tag", tag)
    }

    /// Returns the address of the QR codes of these links.
    fn sheet(&self) -> String {
        address(qr_sheet::PATH, &self.query)
    }

    /// Returns where the form of the chosen links is sent to.
    fn action(&self) -> String {
        address(PATH, &self.query)
    }

    fn count(&self) -> u64 {
        per_page(&self.query)
    }

    /// Returns whether a filter hides links.
    fn is_filtered(&self) -> bool {
        let is_filled = |name: &&str| self.query.filled(name).is_some();
        self.created_in != Period::All || ["search", "tag", "domain", "ended"].iter().any(is_filled)
    }
}

/// Reads the query of a list: search, filters, order and page. Invalid fields are recorded in
/// `wrong`.
pub(super) fn read_query(pages: &Pages, query: &Form, wrong: &mut FieldErrors) -> ListLinks {
    let page = query.filled("page").map(|text| {
        let page = text.parse().ok().filter(|page| *page > 0);
        page.ok_or_else(|| "expected a number from 1".to_owned())
    });
    let (now, zone) = (pages.api.domain_cache.now(), &pages.api.time_zone);
    let created = period(query, "created", wrong).bounds(now, zone);
    let hides_ended = query.is_on("ended");
    ListLinks {
        page: page.and_then(|read| wrong.note("page", read)),
        per_page: PerPage::Count(per_page(query)),
        search: query.owned("search"),
        domain: query.owned("domain"),
        tags: query.owned("tag").into_iter().collect(),
        since: created.start,
        until: created.end,
        exclude_past: hides_ended,
        exclude_spent: hides_ended,
        deleted: query.get("deleted") == Some("true"),
        order_by: query.owned("order"),
        visits_in: visit_days(period(query, "visits", wrong), now, zone),
        count_max: Some(COUNTED_MAX),
        ..ListLinks::default()
    }
}

/// Returns the number of links on a page.
fn per_page(query: &Form) -> u64 {
    let asked = query.filled("count").and_then(|text| text.parse().ok());
    asked.filter(|count| COUNTS.contains(count)).unwrap_or(PER_PAGE)
}

/// Reads the period of a field; all of the time if it is empty.
pub(super) fn period(query: &Form, field: &str, wrong: &mut FieldErrors) -> Period {
    let Some(name) = query.filled(field) else { return Period::All };
    let found = PERIODS.into_iter().find(|period| period.name() == name);
    wrong.note(field, found.ok_or_else(|| "expected the name of a period".to_owned())).unwrap_or(Period::All)
}

/// Returns the periods to choose from: names and texts.
pub(super) fn period_choices(t: &Locale) -> Vec<(&'static str, String)> {
    PERIODS.into_iter().map(|period| (period.name(), period.text(t))).collect()
}

/// Returns the days whose visits are counted; `None` for all visits.
///
/// They are days of UTC, and the period has those of another zone. So one that goes on has the
/// present day of UTC, which is tomorrow for some and yesterday for others.
fn visit_days(period: Period, now: Timestamp, zone: &TimeZone) -> Option<VisitDays> {
    let (first, last) = period.dates(now, zone);
    let today = now.to_zoned(TimeZone::UTC).date();
    Some(VisitDays { first: first?.min(today), last: last.unwrap_or(today) })
}

/// Shows a page of the list.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let shown = match read(pages, request, session).await? {
        Read::Page(shown) => shown,
        Read::NoSuchPage(last) => {
            // The last link of the last page was deleted, or a bookmark is old.
            let query = request.query.only(&KNOWN).query_with("page", &last.to_string());
            return Ok(redirect(StatusCode::SEE_OTHER, &format!("{PATH}?{query}")));
        }
    };
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &*shown))
}

/// A page of the list that was read.
pub(super) enum Read<'a> {
    Page(Box<ListPage<'a>>),
    /// The page does not exist; the last one does.
    NoSuchPage(u64),
}

/// Reads the page of the list that the query asks for.
pub(super) async fn read<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
) -> Result<Read<'a>, PageError> {
    let (query, by, service) = (&request.query, &session.grant, &pages.api.links);
    let mut wrong = FieldErrors::default();
    let list = read_query(pages, query, &mut wrong);
    let (is_trash, days) = (list.deleted, list.visits_in);
    let listed = service.list_links(list, wrong, by).await?;
    let extent = Extent::of(&listed);
    if let Some(last) = extent.instead() {
        return Ok(Read::NoSuchPage(last));
    }
    let t = request.preferences.locale;
    let mut links = Vec::with_capacity(listed.entries.len());
    for piece in pieces(&listed.entries) {
        let records = service.read_piece(&listed, piece, by).await?;
        let ids: Vec<_> = records.iter().map(|record| record.link.id).collect();
        let visits = match days {
            Some(days) => service.visit_totals_in(&ids, days, by).await?,
            None => service.visit_totals(&ids, by).await?,
        };
        let visits_of = |record: &links::Record| visits.get(&record.link.id).copied().unwrap_or_default();
        links.extend(records.iter().map(|record| ShownLink::new(pages, record, visits_of(record), t)));
    }
    let mut ignored = FieldErrors::default();
    let mut tags = service.tag_names(TAGS_MAX, by).await?;
    // The form keeps a chosen tag that is not among the first ones.
    let chosen = query.filled("tag").and_then(|name| Tag::exactly(name).ok());
    tags.extend(chosen.filter(|chosen| !tags.contains(chosen)));
    Ok(Read::Page(Box::new(ListPage {
        frame: Frame::new(request, Some(session), Place::Links),
        links,
        extent,
        tags,
        domains: service.domains(false, by).await?.into_iter().map(|domain| domain.name).collect(),
        is_trash,
        orders: ORDERS,
        counts: COUNTS,
        periods: period_choices(t),
        visits_in: period(query, "visits", &mut ignored),
        created_in: period(query, "created", &mut ignored),
        may_count: by.scopes.allow(Scope::Visits),
        may: May { edit: by.scopes.allow(Scope::Edit), delete: by.scopes.allow(Scope::Delete) },
        done: Done::of(query),
        deleted: query.get("gone").and_then(Choice::parse),
        query: query.only(&KNOWN),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(total: u64, page: u64, len: u64) -> Extent {
        Extent { total, page, per_page: 100, len }
    }

    #[test]
    fn visits_of_a_period_are_those_of_all_its_days_until_now() {
        let days = |period, now: &str, zone: &str| {
            let now: Timestamp = now.parse().unwrap();
            let days = visit_days(period, now, &TimeZone::get(zone).unwrap());
            days.map(|VisitDays { first, last }| format!("{first}/{last}"))
        };
        let evening = "2026-11-25T01:30:00Z";
        assert_eq!(days(Period::Week, evening, "America/New_York").unwrap(), "2026-11-18/2026-11-25");
        assert_eq!(days(Period::Week, evening, "UTC").unwrap(), "2026-11-19/2026-11-25");
        let first = "2026-11-30T18:30:00Z";
        assert_eq!(days(Period::ThisMonth, first, "Asia/Kathmandu").unwrap(), "2026-11-30/2026-11-30");
        assert_eq!(days(Period::LastMonth, first, "Asia/Kathmandu").unwrap(), "2026-11-01/2026-11-30");
        assert_eq!(days(Period::All, first, "UTC"), None);
    }

    #[test]
    fn a_counted_list_ends_with_its_last_page() {
        for (total, page, len, instead, has_more) in [
            (0, 1, 0, None, false),
            (100, 1, 100, None, false),
            (101, 1, 100, None, true),
            (101, 2, 1, None, false),
            (101, 3, 0, Some(2), false),
            (0, 2, 0, Some(1), false),
            (COUNTED_MAX - 1, 1_001, 0, Some(1_000), false),
        ] {
            let shown = extent(total, page, len);
            assert_eq!((shown.instead(), shown.has_more()), (instead, has_more), "{shown:?}");
        }
    }

    #[test]
    fn a_longer_list_goes_on_until_a_page_is_not_full() {
        for (page, len, instead, has_more) in [
            (1, 100, None, true),
            (1_000, 100, None, true),
            (5_000, 100, None, true),
            (5_001, 7, None, false),
            (5_002, 0, Some(1_000), false),
        ] {
            let shown = extent(COUNTED_MAX, page, len);
            assert_eq!((shown.instead(), shown.has_more()), (instead, has_more), "{shown:?}");
        }
    }
}
