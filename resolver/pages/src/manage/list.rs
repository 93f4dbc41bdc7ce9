//! The list of links, with search, filters, order and pages; with `deleted=true` the trash.

use std::sync::Arc;

use app::{
    FieldErrors,
    list_links::{ListLinks, PerPage, pieces},
};
use askama::Template;
use hyper::StatusCode;
use links::scope::Scope;
use store::TagCount;
use web::Answer;

use super::{PATH, paged::address, qr_sheet, shown::ShownLink};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::PageError,
    form::Form,
    frame::{Frame, Place},
    request::PageRequest,
    session::Session,
};

/// Links on a page.
const PER_PAGE: u64 = 50;
/// Maximum number of tags to choose from. The others are found by the search.
const TAGS_MAX: usize = 300;
/// The fields of the query. Others would be repeated in the address of every tag.
const KNOWN: [&str; 6] = ["search", "tag", "domain", "order", "deleted", "page"];
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
    /// The fields of the query that the list knows.
    query: Form,
    tags: Vec<String>,
    domains: Vec<String>,
    is_trash: bool,
    orders: [(&'static str, &'static str); 5],
    /// Whether the key may restore links, of the trash.
    may_restore: bool,
}

impl ListPage<'_> {
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

    /// Returns whether a filter hides links.
    fn is_filtered(&self) -> bool {
        ["search", "tag", "domain"].iter().any(|name| self.query.filled(name).is_some())
    }
}

/// Reads the query of a list: search, filters, order and page. `wrong` gets the field of a page
/// that cannot be.
pub(super) fn read_query(query: &Form, wrong: &mut FieldErrors) -> ListLinks {
    let page = query.filled("page").map(|text| {
        let page = text.parse().ok().filter(|page| *page > 0);
        page.ok_or_else(|| "expected a number from 1".to_owned())
    });
    ListLinks {
        page: page.and_then(|read| wrong.note("page", read)),
        per_page: PerPage::Count(PER_PAGE),
        search: query.owned("search"),
        domain: query.owned("domain"),
        tags: query.owned("tag").into_iter().collect(),
        deleted: query.get("deleted") == Some("true"),
        order_by: query.owned("order"),
        ..ListLinks::default()
    }
}

/// Returns the names of tags for a choice.
fn tag_names(tags: Vec<TagCount>) -> Vec<String> {
    tags.into_iter().take(TAGS_MAX).map(|tag| tag.tag.to_string()).collect()
}

/// Shows a page of the list.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (query, by, service) = (&request.query, &session.grant, &pages.api.links);
    let mut wrong = FieldErrors::default();
    let list = read_query(query, &mut wrong);
    let is_trash = list.deleted;
    let listed = service.list_links(list, wrong, by).await?;
    let (query, last) = (query.only(&KNOWN), listed.total.div_ceil(PER_PAGE).max(1));
    if listed.page > last {
        // The last link of the last page was deleted, or a bookmark is old.
        let query = query.query_with("page", &last.to_string());
        return Ok(redirect(StatusCode::SEE_OTHER, &format!("{PATH}?{query}")));
    }
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
        pages: last,
        query,
        tags: tag_names(service.tags(None, None, by).await?),
        domains: service.domains(false, by).await?.into_iter().map(|domain| domain.name).collect(),
        is_trash,
        orders: ORDERS,
        may_restore: is_trash && by.scopes.allow(Scope::Delete),
    };
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}
