//! `GET /rest/v3/short-urls`
//!
//! The links of a long page are read a few at a time while the client reads the answer. A list
//! takes about a megabyte of memory, whatever it shows, and one that its client does not read takes
//! no more.

use std::{collections::HashMap, sync::Arc};

use app::{
    AppError,
    list_links::{ListLinks, ListedLinks},
};
use codes::LinkId;
use dto::Flag;
use links::{Filter, LongUrl, Outlined, PER_PAGE_MAX, Record};
use store::VisitTotals;

use super::{
    link_fields::short_url,
    pagination::{Paging, page_number, page_size, pagination},
    prelude::*,
    read::time_range,
    route::LINKS,
    streamed::{Pieces, stream},
};
use crate::Api;
use web::BrokenOff;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, LINKS, keyed!(Scope::Read, list))
            .document("listShortUrls", Topic::Links, "List links")
            .text(format!(
                "Keys of one domain, or of their own links only, see no others. A page has at most {PER_PAGE_MAX} links. \
                 A domain or an API key that does not exist has no links, which is no error."
            ))
            .query::<dto::LinkListQuery>()
            .answers::<dto::ShortUrlPage>("A page of links."),
    ]
}

/// Lists links: a short page at once, a long one in pieces, each read when the client has taken the
/// one before.
async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let (query, mut wrong) = call.query();
    let request = request(api, query, &mut wrong);
    let listed = api.links.list_links(request, wrong, by).await?;
    let Some(piece) = in_one_piece(api, &listed.entries, by).await? else {
        return stream(api, by, "shortUrls", |to| write(listed, to));
    };
    let records = api.links.read_piece(&listed, &piece, by).await?;
    let (names, visits) = (api.links.names(&records).await, visits_of(api, &records, by).await?);
    let shown = |record| short_url(api, record, &names, of_link(&visits, record));
    let data: Vec<_> = records.iter().filter_map(shown).collect();
    let pagination = pagination(paging(&listed), data.len(), listed.total_of_pages());
    Ok(json(&dto::ShortUrlPage { short_urls: dto::Page { data, pagination } }))
}

/// Reads how often links were visited.
async fn visits_of(
    api: &Api,
    records: &[Record],
    by: &Grant,
) -> Result<HashMap<LinkId, VisitTotals>, AppError> {
    let ids: Vec<LinkId> = records.iter().map(|record| record.link.id).collect();
    api.links.visit_totals(&ids, by).await
}

fn of_link(visits: &HashMap<LinkId, VisitTotals>, record: &Record) -> VisitTotals {
    visits.get(&record.link.id).copied().unwrap_or_default()
}

fn paging(listed: &ListedLinks) -> Paging {
    Paging { page: listed.page, per_page: Some(listed.per_page) }
}

/// Returns the entries of a page that is a single piece, and `None` for a longer page.
async fn in_one_piece(
    api: &Api,
    entries: &[Outlined],
    by: &Grant,
) -> Result<Option<Vec<Outlined>>, AppError> {
    if links::pieces(entries).nth(1).is_some() {
        return Ok(None);
    }
    let piece = api.links.weigh(entries, by).await?;
    let is_one = links::pieces(&piece).nth(1).is_none();
    Ok(is_one.then_some(piece))
}

async fn write(listed: ListedLinks, mut to: Pieces) -> Result<(), BrokenOff> {
    let (api, by) = (Arc::clone(&to.sender.api), to.sender.by.clone());
    for piece in links::pieces(&listed.entries) {
        let piece = api.links.weigh(piece, &by).await.map_err(|_| BrokenOff)?;
        for part in links::pieces(&piece) {
            let records = api.links.read_piece(&listed, part, &by).await.map_err(|_| BrokenOff)?;
            let names = api.links.names(&records).await;
            let visits = visits_of(&api, &records, &by).await.map_err(|_| BrokenOff)?;
            let shown = |record| short_url(&api, record, &names, of_link(&visits, record));
            records.iter().filter_map(shown).try_for_each(|link| to.list.push(&link))?;
            to.send().await?;
        }
    }
    to.finish(paging(&listed), listed.total_of_pages()).await
}

impl Fields for dto::LinkListQuery {
    fn expected(parameter: &str) -> String {
        match parameter {
            "tagsMode" | "excludeTagsMode" => "expected any or all".to_owned(),
            // The others are texts, which every value of a query is.
            _ => "expected true or false".to_owned(),
        }
    }
}

pub(super) fn request(api: &Api, query: dto::LinkListQuery, wrong: &mut FieldErrors) -> ListLinks {
    let dates = (query.start_date.as_deref(), query.end_date.as_deref());
    let (since, until) = time_range(dates, &api.time_zone, wrong);
    let page = wrong.note("page", page_number(query.page.as_deref()));
    let per_page = query.items_per_page.map(|text| {
        let size = wrong.note("itemsPerPage", page_size(&text)).flatten();
        // All links, up to the maximum.
        size.unwrap_or(u64::MAX)
    });
    let (Flag(deleted), Flag(exclude_past), Flag(exclude_spent)) =
        (query.deleted, query.exclude_past_valid_until, query.exclude_max_visits_reached);
    let filter = Filter {
        page: page.unwrap_or_default(),
        per_page,
        search: query.search_term,
        long_url: query.long_url.map(LongUrl::from_stored),
        tags_mode: query.tags_mode,
        exclude_tags_mode: query.exclude_tags_mode,
        since,
        until,
        deleted,
        exclude_past,
        exclude_spent,
        // Clients walk the whole list by the number of pages.
        count_max: None,
        ..Filter::default()
    };
    ListLinks {
        filter,
        domain: query.domain,
        api_key_name: query.api_key_name,
        external_id: query.external_id,
        tags: query.tags,
        exclude_tags: query.exclude_tags,
        order_by: query.order_by,
        visits_in: None,
    }
}
