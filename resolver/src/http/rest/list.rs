//! `GET /rest/v3/short-urls`
//!
//! 1. The links of a long page are read a few at a time while the client takes the answer: a list takes
//!    about a megabyte of memory, whatever it shows, and a client that does not read it holds no more.
//! 2. Few lists are under way for one key, and a client that takes too long for a piece is cut off.

use std::{sync::Arc, time::Duration};

use app::{
    AppError, FieldErrors,
    list_links::{ListLinks, ListedLinks, PerPage, pieces},
};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use links::{Outlined, Record, TagsMode, api_key::Grant};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

use super::{
    JSON, fields, json,
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
    short_url::ShortUrl,
};
use crate::http::{
    Answer, App, Body, BrokenOff, Piece,
    budgets::{Held, Holder},
};

/// How long a client may take for a piece.
const PIECE_TIME: Duration = Duration::from_secs(30);

/// Lists links: a short page at once, a long one in pieces, each read when the one before has been taken.
pub(super) async fn list(app: &Arc<App>, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let (request, wrong) = read(app, query);
    let listed = app.links.list_links(request, wrong, by).await?;
    let Some(piece) = in_one_piece(app, &listed.entries, by).await? else {
        let under_way = app.budgets.lists.take(Holder::Key(by.id), 1)?;
        return Ok(stream(Arc::clone(app), listed, by.clone(), under_way));
    };
    let records = app.links.read_piece(&listed, &piece, by).await?;
    let names = app.links.names(&records).await;
    let links: Vec<_> = records.iter().filter_map(|record| ShortUrl::of(app, record, &names)).collect();
    let pagination = pagination(paging(&listed), links.len(), listed.total);
    Ok(json(&json!({ "shortUrls": { "data": links, "pagination": pagination } })))
}

fn paging(listed: &ListedLinks) -> Paging {
    Paging { page: listed.page, per_page: Some(listed.per_page) }
}

/// The entries of a page that is a single piece; `None` for a longer page.
async fn in_one_piece(
    app: &App,
    entries: &[Outlined],
    by: &Grant,
) -> Result<Option<Vec<Outlined>>, AppError> {
    if pieces(entries).nth(1).is_some() {
        return Ok(None);
    }
    let piece = app.links.weigh(entries, by).await?;
    let is_one = pieces(&piece).nth(1).is_none();
    Ok(is_one.then_some(piece))
}

/// An answer that is written while it is read.
fn stream(app: Arc<App>, listed: ListedLinks, by: Grant, under_way: Held) -> Answer {
    let (to, pieces) = mpsc::channel(1);
    let runtime = app.runtime.clone();
    runtime.spawn(async move {
        if let Err(BrokenOff) = write(&app, &listed, &by, &to).await {
            let _ = timeout(PIECE_TIME, to.send(Err(BrokenOff))).await;
        }
    });
    let mut answer = Answer::new(Body::stream(pieces, under_way));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    answer
}

/// Writes a list piece by piece. A client has a while to take each.
async fn write(
    app: &App,
    listed: &ListedLinks,
    by: &Grant,
    to: &mpsc::Sender<Piece>,
) -> Result<(), BrokenOff> {
    let (mut text, mut count) = (r#"{"shortUrls":{"data":["#.as_bytes().to_vec(), 0);
    for piece in pieces(&listed.entries) {
        let piece = app.links.weigh(piece, by).await.map_err(|_| BrokenOff)?;
        for part in pieces(&piece) {
            let records = app.links.read_piece(listed, part, by).await.map_err(|_| BrokenOff)?;
            count += write_links(app, &records, count == 0, &mut text).await?;
            send(to, std::mem::take(&mut text)).await?;
        }
    }
    let pagination = pagination(paging(listed), count, listed.total);
    send(to, format!(r#"],"pagination":{pagination}}}}}"#).into_bytes()).await
}

/// Writes links behind each other; how many there were.
async fn write_links(
    app: &App,
    records: &[Record],
    mut is_first: bool,
    text: &mut Vec<u8>,
) -> Result<usize, BrokenOff> {
    let (names, mut count) = (app.links.names(records).await, 0);
    for record in records {
        let Some(link) = ShortUrl::of(app, record, &names) else { continue };
        if !std::mem::take(&mut is_first) {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, &link).map_err(|_| BrokenOff)?;
        count += 1;
    }
    Ok(count)
}

async fn send(to: &mpsc::Sender<Piece>, text: Vec<u8>) -> Result<(), BrokenOff> {
    let sent = timeout(PIECE_TIME, to.send(Ok(text.into()))).await;
    sent.map_err(|_| BrokenOff)?.map_err(|_| BrokenOff)
}

/// Reads a query.
fn read(app: &App, query: &Query) -> (ListLinks, FieldErrors) {
    let mut wrong = FieldErrors::default();
    let mut time = |name| {
        let read = query.text(name).map(|text| fields::parse_time(text, &app.time_zone)).transpose();
        wrong.note(name, read).flatten()
    };
    let (since, until) = (time("startDate"), time("endDate"));
    let mut mode = |name| wrong.note(name, read_mode(query.text(name))).unwrap_or_default();
    let (tags_mode, exclude_tags_mode) = (mode("tagsMode"), mode("excludeTagsMode"));
    let mut flag = |name| wrong.note(name, query.flag(name)).unwrap_or_default();
    let deleted = flag("deleted");
    let exclude_past = flag("excludePastValidUntil");
    let exclude_spent = flag("excludeMaxVisitsReached");
    let page = wrong.note("page", Paging::page(query));
    let per_page = match query.text("itemsPerPage") {
        None => PerPage::Default,
        Some(_) => match wrong.note("itemsPerPage", Paging::per_page(query, None)).flatten() {
            None => PerPage::All,
            Some(count) => PerPage::Count(count),
        },
    };
    let text = |name| query.text(name).map(str::to_owned);
    let list = |name| query.list(name).map(str::to_owned).collect();
    let request = ListLinks {
        page,
        per_page,
        search: text("searchTerm"),
        long_url: text("longUrl"),
        domain: text("domain"),
        api_key_name: text("apiKeyName"),
        tags: list("tags"),
        tags_mode,
        exclude_tags: list("excludeTags"),
        exclude_tags_mode,
        since,
        until,
        deleted,
        exclude_past,
        exclude_spent,
        order_by: text("orderBy"),
    };
    (request, wrong)
}

fn read_mode(text: Option<&str>) -> Result<TagsMode, String> {
    match text {
        None | Some("any") => Ok(TagsMode::Any),
        Some("all") => Ok(TagsMode::All),
        _ => Err("expected any or all".to_owned()),
    }
}
