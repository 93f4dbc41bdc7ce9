//! The list of links, with search, filters, order and pages; with `deleted=true` the trash.

use app::{
    FieldErrors,
    find_link::LinkName,
    list_links::{ListLinks, ListedLinks, VisitDays},
};
use askama::Template;
use hyper::StatusCode;
use jiff::{Timestamp, tz::TimeZone};
use links::{Filter, PER_PAGE_MAX, Record, Tag, scope::Scope};
use web::Answer;

use super::{
    choice::{Done, GONE, link_field, parse_link_field},
    icon, list_table,
    new_link::{self, NewLink},
    notices::Refusal,
    offer::offered,
    paged::{KNOWN, Paged, address},
    period::{Period, period_choices, read_period},
    shown::ShownLink,
    tour::{self, Step},
};
use crate::{
    addresses::{LINKS, QR_SHEET, explain_page, link_page, link_statistics},
    answer::redirect,
    context::Context,
    error::PageError,
    form::Form,
    frame::Frame,
    link_input::offered_tags,
};

/// Links on a page, unless the query says otherwise.
const PER_PAGE: u64 = 50;
/// The numbers of links on a page that can be chosen.
const COUNTS: [u64; 3] = [10, PER_PAGE, 100];
/// The number of links at which the count of a list ends, and that of one with a filter.
const COUNTED_MAX: u64 = 10_000;
const FILTERED_MAX: u64 = 2_000;
/// The orders that a list can have, with the texts that name them.
const ORDERS: [(&str, &str); 9] = [
    ("dateCreated-DESC", "order-newest"),
    ("dateCreated-ASC", "order-oldest"),
    ("visits-DESC", "order-visits"),
    ("visits-ASC", "order-fewest-visits"),
    ("lastVisit-DESC", "order-last-visit"),
    ("shortCode-ASC", "column-link"),
    ("title-ASC", "field-title"),
    ("longUrl-ASC", "field-longUrl"),
    ("longUrl-DESC", "order-long-url-back"),
];

#[derive(Template)]
#[template(path = "manage/list.html")]
struct ListPage<'a> {
    frame: Frame<'a>,
    links: Vec<ShownLink>,
    paged: Paged,
    query: Form,
    tags: Vec<Tag>,
    domains: Vec<String>,
    is_trash: bool,
    /// The chosen periods: that in which visits are counted, and that in which links were made.
    visits_in: Period,
    created_in: Period,
    may_count: bool,
    may_edit: bool,
    may_delete: bool,
    has_icons: bool,
    done: Done,
    deleted: Option<LinkName>,
    new_link: NewLink,
}

/// The head of a column that the list can be ordered by: the query of that order, and the present
/// direction as `aria-sort` has it.
struct Head {
    query: String,
    sort: &'static str,
}

impl Head {
    /// Makes the head of a field's column. A list in the order of another field gets the direction
    /// `first`, and one in the order of this field the other direction.
    fn new(query: &Form, field: &str, first: &str) -> Self {
        let (newest, _) = ORDERS[0];
        let order = query.filled("order").unwrap_or(newest);
        let (next, sort) = match order.strip_prefix(field) {
            Some("-ASC") => ("DESC", "ascending"),
            Some("-DESC") => ("ASC", "descending"),
            _ => (first, "none"),
        };
        Self { query: query.without(&["page"]).query_with("order", &format!("{field}-{next}")), sort }
    }
}

impl ListPage<'_> {
    fn is_wrong(&self, field: &str) -> bool {
        self.new_link.is_wrong(field)
    }

    /// Returns whether there is nothing that a filter hides either.
    fn is_empty(&self) -> bool {
        self.links.is_empty() && !self.is_filtered()
    }

    /// Returns the domain that the form for a new link begins with: that of the list, if any.
    fn domain_of_new(&self) -> &str {
        let form = if self.new_link.refusal.is_some() { &self.new_link.typed } else { &self.query };
        form.value("domain")
    }

    fn head(&self, field: &str, first: &str) -> Head {
        Head::new(&self.query, field, first)
    }

    /// Returns whether there is anything to choose links for.
    fn may_choose(&self) -> bool {
        self.may_delete || (self.may_edit && !self.is_trash)
    }

    /// Returns the first steps of a key that has made one link at most.
    fn steps(&self) -> Vec<Step> {
        let is_whole = self.new_link.may_create && !self.is_trash && !self.is_filtered();
        if is_whole { tour::steps(&self.links, self.paged.total, self.may_count) } else { Vec::new() }
    }

    /// Returns the address of the icon of a link; `None` if it is shown without one.
    fn icon(&self, link: &ShownLink) -> Option<String> {
        if self.has_icons { icon::address(&link.long_url) } else { None }
    }

    /// Returns the query of the links that have a tag too, from the first page on.
    fn tag_query(&self, tag: &str) -> String {
        self.query.without(&["page"]).query_with("tag", tag)
    }

    fn is_filtered(&self) -> bool {
        let is_filled = |name: &&str| self.query.filled(name).is_some();
        self.created_in != Period::All || ["search", "tag", "domain", "ended"].iter().any(is_filled)
    }
}

/// Reads the query of a list; what is wrong is recorded.
pub(super) fn read_query(context: &Context<'_>, query: &Form, wrong: &mut FieldErrors) -> ListLinks {
    let api = &context.pages.api;
    let (now, zone) = (api.domain_cache.now(), &api.time_zone);
    let (since, until) = read_period(query, "created", wrong).bounds(now, zone);
    let page = |text: &str| text.parse().ok().filter(|page| *page > 0);
    let page = query.read("page", "no number from 1", wrong, page);
    let hides_ended = query.is_on("ended");
    let filter = Filter {
        page: page.unwrap_or_default(),
        per_page: Some(per_page(query)),
        search: query.owned("search"),
        since,
        until,
        exclude_past: hides_ended,
        exclude_spent: hides_ended,
        deleted: query.get("deleted") == Some("true"),
        ..Filter::default()
    };
    let is_filtered = filter != filter.of_all() || query.filled("domain").or(query.filled("tag")).is_some();
    let filter = Filter { count_max: Some(if is_filtered { FILTERED_MAX } else { COUNTED_MAX }), ..filter };
    ListLinks {
        filter,
        domain: query.owned("domain"),
        tags: query.owned("tag").into_iter().collect(),
        order_by: query.owned("order"),
        visits_in: visit_days(read_period(query, "visits", wrong), now, zone),
        ..ListLinks::default()
    }
}

fn per_page(query: &Form) -> u64 {
    let asked = query.filled("count").and_then(|text| text.parse().ok());
    asked.filter(|count| COUNTS.contains(count)).unwrap_or(PER_PAGE)
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

/// Answers with the list of the query; `done` is what became of the last change of chosen links,
/// and `refusal` why a new link was not made.
pub(super) async fn answer(
    context: &Context<'_>,
    status: StatusCode,
    done: Done,
    refusal: Option<Refusal>,
) -> Result<Answer, PageError> {
    let (query, by, service) = (context.query, context.by, context.links);
    let mut wrong = FieldErrors::default();
    let list = read_query(context, query, &mut wrong);
    let (is_trash, days) = (list.filter.deleted, list.visits_in);
    let listed = service.list_links(list, wrong, by).await?;
    let counted = (listed.total, listed.is_counted);
    let paged = match page_of(counted, listed.page, listed.per_page, listed.entries.len() as u64, query) {
        Ok(paged) => paged,
        Err(last) => {
            // The last link of the last page was deleted, or a bookmark is old. The notice of the
            // deletion stays, with its undo.
            let query = query.query_with("page", &last.to_string());
            return Ok(redirect(StatusCode::SEE_OTHER, &format!("{LINKS}?{query}")));
        }
    };
    let mut ignored = FieldErrors::default();
    let mut tags = offered_tags(service, by).await;
    // The form keeps a chosen tag that is not among the first ones.
    let chosen = query.filled("tag").and_then(|name| Tag::exactly(name).ok());
    tags.extend(chosen.filter(|chosen| !tags.contains(chosen)));
    let page = ListPage {
        frame: context.frame(LINKS),
        links: read_links(context, &listed, days).await?,
        paged,
        tags,
        domains: service.domains(false, by).await?.into_iter().map(|domain| domain.name).collect(),
        is_trash,
        visits_in: read_period(query, "visits", &mut ignored),
        created_in: read_period(query, "created", &mut ignored),
        may_count: context.allows(Scope::Visits),
        may_edit: context.allows(Scope::Edit),
        may_delete: context.allows(Scope::Delete),
        has_icons: service.icons.is_some(),
        done,
        deleted: offered(context, LINKS, &[GONE]).and_then(|gone| parse_link_field(gone.value(GONE))),
        new_link: NewLink::of(context, refusal).await,
        query: query.only(&KNOWN),
    };
    Ok(context.page(status, &page))
}

/// Describes a page with `len` links. The error is the last page, to show instead of one that does
/// not exist.
fn page_of(
    (total, is_counted): (u64, bool),
    page: u64,
    per_page: u64,
    len: u64,
    query: &Form,
) -> Result<Paged, u64> {
    let last = total.div_ceil(per_page).max(1);
    if page > last && (is_counted || len == 0) {
        return Err(last);
    }
    if is_counted {
        return Ok(Paged::new(total, page, per_page, LINKS, query));
    }
    // Where links were not counted, a full page may be the last one.
    let pages = if len < per_page { page } else { page + 1 };
    Ok(Paged { total, pages: None, ..Paged::new(pages * per_page, page, per_page, LINKS, query) })
}

/// Reads the links of a page with their visits on these days; `None` for all visits.
async fn read_links(
    context: &Context<'_>,
    listed: &ListedLinks,
    days: Option<VisitDays>,
) -> Result<Vec<ShownLink>, PageError> {
    let (by, service) = (context.by, context.links);
    let mut links = Vec::with_capacity(listed.entries.len());
    for piece in links::pieces(&listed.entries) {
        let records = service.read_piece(listed, piece, by).await?;
        let ids: Vec<_> = records.iter().map(|record| record.link.id).collect();
        let visits = match days {
            Some(days) => service.visit_totals_in(&ids, days, by).await?,
            None => service.visit_totals(&ids, by).await?,
        };
        let visits_of = |record: &Record| visits.get(&record.link.id).map_or(0, |visits| visits.total);
        links.extend(records.iter().map(|record| ShownLink::new(context, record, visits_of(record))));
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_head_of_a_column_leads_to_its_order_and_then_to_the_other_direction() {
        let head = |query: &str, field: &str| {
            let Head { query, sort } = Head::new(&Form::parse(query.as_bytes()), field, "DESC");
            (query, sort)
        };
        for (query, field, leads_to, sort) in [
            ("", "dateCreated", "order=dateCreated-ASC", "descending"),
            ("", "visits", "order=visits-DESC", "none"),
            ("tag=a&page=3&order=visits-DESC", "visits", "tag=a&order=visits-ASC", "descending"),
            ("order=visits-ASC", "visits", "order=visits-DESC", "ascending"),
            ("order=visits-ASC", "dateCreated", "order=dateCreated-DESC", "none"),
        ] {
            assert_eq!(head(query, field), (leads_to.to_owned(), sort), "{query} {field}");
        }
    }

    #[test]
    fn a_counted_list_ends_with_its_last_page_and_a_longer_one_with_a_page_that_is_not_full() {
        for (total, page, len, expected) in [
            (0, 1, 0, Ok(false)),
            (100, 1, 100, Ok(false)),
            (101, 1, 100, Ok(true)),
            (101, 2, 1, Ok(false)),
            (101, 3, 0, Err(2)),
            (0, 2, 0, Err(1)),
            (COUNTED_MAX - 1, 101, 0, Err(100)),
            (COUNTED_MAX, 1, 100, Ok(true)),
            (COUNTED_MAX, 100, 100, Ok(true)),
            (COUNTED_MAX, 500, 100, Ok(true)),
            (COUNTED_MAX, 501, 7, Ok(false)),
            (COUNTED_MAX, 502, 0, Err(100)),
        ] {
            let paged = page_of((total, total < COUNTED_MAX), page, 100, len, &Form::default());
            let has_more = paged.map(|paged| paged.after.is_some());
            assert_eq!(has_more, expected, "{total} {page} {len}");
        }
    }
}
