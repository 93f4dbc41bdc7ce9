//! The list of links, with search, filters, order and pages; with `deleted=true` the trash.

use std::sync::Arc;

use app::{
    FieldErrors,
    list_links::{ListLinks, PerPage, pieces},
};
use askama::Template;
use hyper::StatusCode;
use web::Answer;

use super::shown::ShownLink;
use crate::{
    Pages,
    answer::{Forms, page},
    error::PageError,
    form::Form,
    frame::{Frame, Place},
    request::PageRequest,
    session::Session,
};

/// Links on a page.
const PER_PAGE: u64 = 50;
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
struct ListPage<'a> {
    frame: Frame<'a>,
    links: Vec<ShownLink>,
    total: u64,
    page: u64,
    pages: u64,
    query: &'a Form,
    tags: Vec<String>,
    domains: Vec<String>,
    is_trash: bool,
    orders: [(&'static str, &'static str); 5],
}

impl ListPage<'_> {
    fn value(&self, name: &str) -> &str {
        self.query.get(name).unwrap_or("")
    }

    /// Returns the query of another page of this list.
    fn page_query(&self, page: u64) -> String {
        self.query.query_with("page", &page.to_string())
    }

    /// Returns whether a filter hides links.
    fn is_filtered(&self) -> bool {
        ["search", "tag", "domain"].iter().any(|name| self.query.filled(name).is_some())
    }
}

/// Shows a page of the list.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (query, by, service) = (&request.query, &session.grant, &pages.api.links);
    let is_trash = query.get("deleted") == Some("true");
    let mut wrong = FieldErrors::default();
    let number = query.filled("page").map(|text| text.parse().map_err(|_| "expected a number".to_owned()));
    let list = ListLinks {
        page: number.and_then(|read| wrong.note("page", read)),
        per_page: PerPage::Count(PER_PAGE),
        search: query.owned("search"),
        domain: query.owned("domain"),
        tags: query.owned("tag").into_iter().collect(),
        deleted: is_trash,
        order_by: query.owned("order"),
        ..ListLinks::default()
    };
    let listed = service.list_links(list, wrong, by).await?;
    let t = request.preferences.locale;
    let mut links = Vec::with_capacity(listed.entries.len());
    for piece in pieces(&listed.entries) {
        let records = service.read_piece(&listed, piece, by).await?;
        let ids: Vec<_> = records.iter().map(|record| record.link.id).collect();
        let visits = service.visit_totals(&ids, by).await?;
        let visits_of = |record: &links::Record| visits.get(&record.link.id).copied().unwrap_or_default();
        links.extend(records.iter().map(|record| ShownLink::new(pages, record, visits_of(record), t)));
    }
    let shown = ListPage {
        frame: Frame::new(request, Some(session), Place::Links),
        links,
        total: listed.total,
        page: listed.page,
        pages: listed.total.div_ceil(PER_PAGE).max(1),
        query,
        tags: service.tags(None, None, by).await?.into_iter().map(|tag| tag.tag.to_string()).collect(),
        domains: service.domains(false, by).await?.into_iter().map(|domain| domain.name).collect(),
        is_trash,
        orders: ORDERS,
    };
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}
