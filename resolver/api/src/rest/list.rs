//! `GET /rest/v3/short-urls`
//!
//! 1. The links of a long page are read a few at a time while the client reads the answer. A list
//!    takes about a megabyte of memory, whatever it shows, and one that its client does not read
//!    takes no more.
//! 2. One key has few lists under way, and a client that takes too long for a piece or for the
//!    whole is cut off. So is one whose key is revoked meanwhile.

use std::{collections::HashMap, sync::Arc, time::Duration};

use app::{
    AppError, FieldErrors,
    list_links::{ListLinks, ListedLinks, PerPage, pieces},
    time::read_time,
};
use codes::LinkId;
use dto::Flag;
use hyper::{
    Method,
    header::{CONTENT_TYPE, HeaderValue},
};
use links::{Outlined, PER_PAGE_MAX, Record, api_key::Grant, scope::Scope};
use store::VisitTotals;
use tokio::{sync::mpsc, time::timeout};

use super::{
    call::Call,
    docs::{Kind, Topic},
    json::{JSON, json},
    link_fields::short_url,
    pagination::{Paging, page_number, page_size, pagination},
    problem::Problem,
    read::Fields,
    route::{Route, keyed},
    router::LINKS,
};
use crate::{Api, authenticate::is_still_granted};
use limits::{Account, Held};
use web::{Answer, Body, BrokenOff, Piece};

/// The time that a client has to read a piece.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// The time that a client has to read a whole list. One that takes its pieces as slowly as it may
/// would keep one of few places for days.
const LIST_TIME: Duration = Duration::from_secs(3_600);

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, LINKS, keyed!(Scope::Read, list))
            .document("listShortUrls", Topic::Links, "List links")
            .text(format!(
                "Keys of one domain, or of their own links only, see no others. A page has at most {PER_PAGE_MAX} links. \
                 A domain or an API key that does not exist has no links, which is no error."
            ))
            .query::<dto::LinkListQuery>()
            .answers::<dto::ShortUrlPage>("A page of links.")
            .fails(&[Kind::InvalidData]),
    ]
}

/// Lists links: a short page at once, a long one in pieces, each read when the client has taken the
/// one before.
async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let (query, wrong) = call.query();
    let (request, wrong) = request(api, query, wrong);
    let listed = api.links.list_links(request, wrong, by).await?;
    let Some(piece) = in_one_piece(api, &listed.entries, by).await? else {
        let under_way = api.budgets.lists.take(Account::Key(by.id.0), 1)?;
        let (reading, by) = (Arc::clone(api), by.clone());
        return Ok(stream(api, under_way, async move |to| write(&reading, &listed, &by, &to).await));
    };
    let records = api.links.read_piece(&listed, &piece, by).await?;
    let (names, visits) = (api.links.names(&records).await, visits_of(api, &records, by).await?);
    let shown = |record| short_url(api, record, &names, of_link(&visits, record));
    let data: Vec<_> = records.iter().filter_map(shown).collect();
    let pagination = pagination(paging(&listed), data.len(), listed.total);
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
    if pieces(entries).nth(1).is_some() {
        return Ok(None);
    }
    let piece = api.links.weigh(entries, by).await?;
    let is_one = pieces(&piece).nth(1).is_none();
    Ok(is_one.then_some(piece))
}

/// Answers with a list while `write` still reads it from the store. `under_way` is its place among
/// long lists.
pub(super) fn stream<W>(
    api: &Arc<Api>,
    under_way: Held,
    write: impl FnOnce(mpsc::Sender<Piece>) -> W,
) -> Answer
where
    W: Future<Output = Result<(), BrokenOff>> + Send + 'static,
{
    let (to, pieces) = mpsc::channel(1);
    let writing = api.runtime.spawn(timeout(LIST_TIME, write(to.clone())));
    api.runtime.spawn(async move {
        // Also after a panic: an answer that only stops would look like a whole one.
        if !matches!(writing.await, Ok(Ok(Ok(())))) {
            let _ = timeout(PIECE_TIME, to.send(Err(BrokenOff))).await;
        }
    });
    let mut answer = Answer::new(Body::stream(pieces, under_way));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    answer
}

/// Writes a list piece by piece. The client has [`PIECE_TIME`] to take each.
async fn write(
    api: &Api,
    listed: &ListedLinks,
    by: &Grant,
    to: &mpsc::Sender<Piece>,
) -> Result<(), BrokenOff> {
    let (mut text, mut count) = (r#"{"shortUrls":{"data":["#.as_bytes().to_vec(), 0);
    for piece in pieces(&listed.entries) {
        let piece = api.links.weigh(piece, by).await.map_err(|_| BrokenOff)?;
        for part in pieces(&piece) {
            must_still_be_granted(api, by).await?;
            let records = api.links.read_piece(listed, part, by).await.map_err(|_| BrokenOff)?;
            count += write_links(api, &records, by, count == 0, &mut text).await?;
            send(to, std::mem::take(&mut text)).await?;
        }
    }
    let pagination = pagination(paging(listed), count, listed.total);
    text.extend_from_slice(br#"],"pagination":"#);
    serde_json::to_writer(&mut text, &pagination).map_err(|_| BrokenOff)?;
    text.extend_from_slice(b"}}");
    send(to, text).await
}

/// Writes links as a comma-separated list, and returns their number.
async fn write_links(
    api: &Api,
    records: &[Record],
    by: &Grant,
    mut is_first: bool,
    text: &mut Vec<u8>,
) -> Result<usize, BrokenOff> {
    let (names, mut count) = (api.links.names(records).await, 0);
    let visits = visits_of(api, records, by).await.map_err(|_| BrokenOff)?;
    for record in records {
        let Some(link) = short_url(api, record, &names, of_link(&visits, record)) else { continue };
        if !std::mem::take(&mut is_first) {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, &link).map_err(|_| BrokenOff)?;
        count += 1;
    }
    Ok(count)
}

/// Breaks a list off whose key was revoked, has expired or has other limits by now.
pub(super) async fn must_still_be_granted(api: &Api, by: &Grant) -> Result<(), BrokenOff> {
    match is_still_granted(api, by).await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(BrokenOff),
    }
}

/// Sends a piece, which the client has [`PIECE_TIME`] to take.
pub(super) async fn send(to: &mpsc::Sender<Piece>, text: Vec<u8>) -> Result<(), BrokenOff> {
    let sent = timeout(PIECE_TIME, to.send(Ok(text.into()))).await;
    sent.map_err(|_| BrokenOff)?.map_err(|_| BrokenOff)
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

/// Converts a query to a request of the application.
fn request(api: &Api, query: dto::LinkListQuery, mut wrong: FieldErrors) -> (ListLinks, FieldErrors) {
    let mut time = |name, text: Option<String>| {
        let read = text.map(|text| read_time(&text, &api.time_zone)).transpose();
        wrong.note(name, read).flatten()
    };
    let (since, until) = (time("startDate", query.start_date), time("endDate", query.end_date));
    let page = wrong.note("page", page_number(query.page.as_deref()));
    let per_page = match query.items_per_page {
        None => PerPage::Default,
        Some(text) => match wrong.note("itemsPerPage", page_size(&text)).flatten() {
            None => PerPage::All,
            Some(count) => PerPage::Count(count),
        },
    };
    let (Flag(deleted), Flag(exclude_past), Flag(exclude_spent)) =
        (query.deleted, query.exclude_past_valid_until, query.exclude_max_visits_reached);
    let request = ListLinks {
        page,
        per_page,
        search: query.search_term,
        long_url: query.long_url,
        domain: query.domain,
        api_key_name: query.api_key_name,
        tags: query.tags,
        tags_mode: query.tags_mode.into(),
        exclude_tags: query.exclude_tags,
        exclude_tags_mode: query.exclude_tags_mode.into(),
        since,
        until,
        deleted,
        exclude_past,
        exclude_spent,
        order_by: query.order_by,
        visits_in: None,
        // Clients walk the whole list by the number of pages.
        count_max: None,
    };
    (request, wrong)
}
