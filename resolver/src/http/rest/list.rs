//! `GET /rest/v3/short-urls`
//!
//! 1. A page may have ten thousand links of many kilobytes. Its ids are read first, and the links a few at a time while the client takes the
//!    answer: a list takes about a megabyte of memory, whatever it shows, and whoever does not read it holds no more.
//! 2. Few lists are under way for one key, and whoever takes too long for a piece is cut off.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use codes::LinkId;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use links::{
    Domain, DomainId, Filter, LongUrl, OrderBy, OrderField, Outline, Outlined, Page, Record, TAGS_MAX, Tag,
    TagsMode, api_key::Grant,
};
use serde_json::json;
use store::PER_PAGE_MAX;
use tokio::{sync::mpsc, time::timeout};

use super::{
    JSON,
    fields::{self, Wrong},
    json,
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
    short_url::{self, ShortUrl},
};
use crate::http::{
    Answer, App, Body, BrokenOff, Piece,
    budgets::{Held, Holder},
};

const ORDERS: &str =
    "expected dateCreated, shortCode, longUrl, title, visits or nonBotVisits, with -ASC or -DESC behind it";
/// Links of a page, unless asked otherwise.
pub(super) const PER_PAGE: u64 = 10;
/// What is read and written at a time, in links and in bytes.
const PIECE_LINKS: usize = 256;
const PIECE_BYTES: u64 = 256 * 1024;
/// Bytes of an entry beside its texts: what a short link is shown as.
const ENTRY_BYTES: u64 = 512;
/// Bytes of a list that goes into one message of gRPC, whose clients take 4 MiB unless told otherwise.
const MESSAGE_BYTES: u64 = 3 * 1024 * 1024;
/// How long a client may take for a piece.
const PIECE_TIME: Duration = Duration::from_secs(30);

/// Lists links: a short page at once, a long one in pieces, each read when the one before has been taken.
pub(super) async fn list(app: &Arc<App>, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let Listed { filter, outline, paging } = outline(app, query, by).await?;
    let Some(piece) = in_one_piece(app, &outline.entries, by).await? else {
        let under_way = app.budgets.lists.take(Holder::Key(by.id), 1)?;
        return Ok(stream(Arc::clone(app), Listed { filter, outline, paging }, by.clone(), under_way));
    };
    let records = read(app, &filter, &piece, by).await?;
    let names = short_url::names(app, &records).await;
    let links: Vec<_> = records.iter().filter_map(|record| ShortUrl::of(app, record, &names)).collect();
    let pagination = pagination(paging, links.len(), outline.total);
    Ok(json(&json!({ "shortUrls": { "data": links, "pagination": pagination } })))
}

/// The links that a query asks for, if they are not too long for one message; with the right to hold them.
pub(in crate::http) async fn list_records(
    app: &App,
    query: &Query,
    by: &Grant,
) -> Result<(Page, Option<Held>), Problem> {
    let Listed { filter, outline, .. } = outline(app, query, by).await?;
    let outlined = fits_message(outline.entries.iter().map(size).sum())?;
    let (holder, mut held) = (Holder::Key(by.id), None);
    app.budgets.widen(&mut held, holder, outlined)?;
    let (mut records, mut bytes) = (Vec::with_capacity(outline.entries.len()), 0);
    for piece in pieces(&outline.entries) {
        let piece = weigh(app, piece, by).await?;
        bytes = fits_message(bytes + piece.iter().map(size).sum::<u64>())?;
        app.budgets.widen(&mut held, holder, bytes)?;
        records.extend(read(app, &filter, &piece, by).await?);
    }
    Ok((Page { records, total: outline.total }, held))
}

/// The length of a list, if it fits into one message.
fn fits_message(bytes: u64) -> Result<u64, Problem> {
    if bytes <= MESSAGE_BYTES {
        return Ok(bytes);
    }
    let expected = format!("expected fewer: these links are longer than {MESSAGE_BYTES} bytes together");
    Err(Problem::invalid("itemsPerPage", expected))
}

/// The entries of a page that is a single piece; none for a longer page.
async fn in_one_piece(app: &App, entries: &[Outlined], by: &Grant) -> Result<Option<Vec<Outlined>>, Problem> {
    if pieces(entries).nth(1).is_some() {
        return Ok(None);
    }
    let piece = weigh(app, entries, by).await?;
    let is_one = pieces(&piece).nth(1).is_none();
    Ok(is_one.then_some(piece))
}

/// Weighs a piece again just before it is read: while a client was slow or a turn was waited for,
/// its links may have grown a thousandfold.
async fn weigh(app: &App, entries: &[Outlined], by: &Grant) -> Result<Vec<Outlined>, Problem> {
    let ids: Vec<LinkId> = entries.iter().map(|entry| entry.id).collect();
    let _turn = app.budgets.turn(by.id).await?;
    Ok(app.store.weigh(&ids).await?)
}

/// The links of a piece of a page. Those that left the list meanwhile, or came back to it, are left out.
async fn read(app: &App, filter: &Filter, entries: &[Outlined], by: &Grant) -> Result<Vec<Record>, Problem> {
    let ids: Vec<LinkId> = entries.iter().map(|entry| entry.id).collect();
    let _turn = app.budgets.turn(by.id).await?;
    let mut records = app.store.records(&ids).await?;
    records.retain(|record| record.link.is_deleted() == filter.deleted);
    Ok(records)
}

/// Bytes of an entry, with what there is beside its texts.
fn size(entry: &Outlined) -> u64 {
    entry.bytes + ENTRY_BYTES
}

/// Parts of a page, none of which takes much memory unless one link does.
pub(in crate::http) fn pieces(mut entries: &[Outlined]) -> impl Iterator<Item = &[Outlined]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |entry: &&Outlined| {
            bytes += size(entry);
            bytes <= PIECE_BYTES
        };
        let count = entries.iter().take(PIECE_LINKS).take_while(fits).count().max(1).min(entries.len());
        let (piece, rest) = entries.split_at(count);
        entries = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// An answer that is written while it is read.
fn stream(app: Arc<App>, listed: Listed, by: Grant, under_way: Held) -> Answer {
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
async fn write(app: &App, listed: &Listed, by: &Grant, to: &mpsc::Sender<Piece>) -> Result<(), BrokenOff> {
    let Listed { filter, outline, paging } = listed;
    let (mut text, mut count) = (r#"{"shortUrls":{"data":["#.as_bytes().to_vec(), 0);
    for piece in pieces(&outline.entries) {
        let piece = weigh(app, piece, by).await.map_err(|_| BrokenOff)?;
        for part in pieces(&piece) {
            let records = read(app, filter, part, by).await.map_err(|_| BrokenOff)?;
            count += write_links(app, &records, count == 0, &mut text).await?;
            send(to, std::mem::take(&mut text)).await?;
        }
    }
    let pagination = pagination(*paging, count, outline.total);
    send(to, format!(r#"],"pagination":{pagination}}}}}"#).into_bytes()).await
}

/// Writes links behind each other; how many there were.
async fn write_links(
    app: &App,
    records: &[Record],
    mut is_first: bool,
    text: &mut Vec<u8>,
) -> Result<usize, BrokenOff> {
    let (names, mut count) = (short_url::names(app, records).await, 0);
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

/// A page, its links not read yet.
struct Listed {
    filter: Filter,
    outline: Outline,
    paging: Paging,
}

async fn outline(app: &App, query: &Query, by: &Grant) -> Result<Listed, Problem> {
    let Wanted { mut filter, by_code } = wanted(query, &app.time_zone)?;
    let paging = Paging { page: filter.page, per_page: filter.per_page };
    if !narrow(app, query, by, &mut filter).await? {
        return Ok(Listed { filter, outline: Outline::default(), paging });
    }
    let _turn = app.budgets.turn(by.id).await?;
    let code = filter.search.as_deref().and_then(|text| app.lookup.id_of(text));
    if let Some(text) = &filter.search {
        filter.search_domains = domains_like(app, text);
    }
    let Some(descending) = by_code else {
        let outline = app.store.outline(&filter, code).await?;
        return Ok(Listed { filter, outline, paging });
    };
    // No database can sort by what is computed from a number: a list that fits one page is sorted here.
    (filter.page, filter.per_page) = (1, Some(PER_PAGE_MAX));
    let mut outline = app.store.outline(&filter, code).await?;
    if outline.total > PER_PAGE_MAX {
        let expected =
            format!("expected another order, or a filter that leaves at most {PER_PAGE_MAX} links");
        return Err(Problem::invalid("orderBy", expected));
    }
    outline.entries.sort_by_cached_key(|entry| app.lookup.name(entry.id, entry.slug.as_ref()));
    if descending {
        outline.entries.reverse();
    }
    outline.entries = paging.of(outline.entries);
    Ok(Listed { filter, outline, paging })
}

/// Leaves out what the query and the key leave out; whether there can be anything at all.
async fn narrow(app: &App, query: &Query, by: &Grant, filter: &mut Filter) -> Result<bool, Problem> {
    if let Some(name) = query.text("domain") {
        let Some(domain) = app.directory.find(name).await? else { return Ok(false) };
        filter.domain = Some(domain);
    }
    if let Some(own) = by.limits.domain {
        if filter.domain.is_some_and(|domain| domain != own) {
            return Ok(false);
        }
        filter.domain = Some(own);
    }
    if let Some(name) = query.text("apiKeyName") {
        let _turn = app.budgets.brief_turn(by.id).await?;
        let keys = app.store.list_api_keys().await?;
        let named: Vec<_> = keys.iter().filter(|key| key.name == name).map(|key| key.id).collect();
        // As with Shlink, a limited key is not asked about others.
        if !by.limits.hides_links() || named.contains(&by.id) {
            filter.created_by = Some(named);
        }
    }
    if by.limits.own_links_only {
        filter.created_by = Some(vec![by.id]);
    }
    Ok(true)
}

/// Domains whose names have this text in them.
fn domains_like(app: &App, text: &str) -> Vec<DomainId> {
    let text = text.to_lowercase();
    let entries = app.directory.entries();
    let others = entries.others().into_iter();
    let alike =
        |domain: &&Arc<Domain>| domain.authority.as_ref().is_some_and(|name| name.as_str().contains(&text));
    let mut found: Vec<DomainId> = others.filter(alike).map(|domain| domain.id).collect();
    found.extend(app.directory.default_name().contains(&text).then_some(DomainId::DEFAULT));
    found
}

/// What a query asks for.
struct Wanted {
    filter: Filter,
    /// Whether in the order of codes, and then whether the last one first.
    by_code: Option<bool>,
}

fn wanted(query: &Query, zone: &TimeZone) -> Result<Wanted, Problem> {
    let mut wrong = Wrong::default();
    let mut time = |name| {
        let read = query.text(name).map(|text| fields::parse_time(text, zone)).transpose();
        wrong.note(name, read).flatten()
    };
    let (since, until) = (time("startDate"), time("endDate"));
    // Links are stored with fractions of a second and shown without: the whole second is within.
    let until = until.map(whole_second);
    let mut mode = |name| wrong.note(name, read_mode(query.text(name))).unwrap_or_default();
    let (tags_mode, exclude_tags_mode) = (mode("tagsMode"), mode("excludeTagsMode"));
    let (order, by_code) = wrong.note("orderBy", read_order(query.text("orderBy"))).unwrap_or_default();
    let mut flag = |name| wrong.note(name, query.flag(name)).unwrap_or_default();
    let deleted = flag("deleted");
    let exclude_past = flag("excludePastValidUntil");
    let exclude_spent = flag("excludeMaxVisitsReached");
    let page = wrong.note("page", Paging::page(query)).unwrap_or(1);
    let per_page = wrong.note("itemsPerPage", Paging::per_page(query, Some(PER_PAGE))).flatten();
    // Whoever asks for more, or for all, is told how many a page has, and how many pages there are.
    let per_page = Some(per_page.map_or(PER_PAGE_MAX, |count| count.min(PER_PAGE_MAX)));
    for name in ["tags", "excludeTags"] {
        if query.list(name).nth(TAGS_MAX).is_some() {
            wrong.note::<()>(name, Err(format!("expected at most {TAGS_MAX} tags")));
        }
    }
    if query.has_nul() {
        wrong.note::<()>("(the query)", Err("expected no NUL".to_owned()));
    }
    wrong.check()?;
    // A tag that cannot be has no links: it is kept as it was written, and found nowhere.
    let tags = |name| {
        let tag = |text| Tag::exactly(text).unwrap_or_else(|_| Tag::from_stored(text));
        let tags: BTreeSet<Tag> = query.list(name).map(tag).collect();
        tags.into_iter().collect()
    };
    let filter = Filter {
        search: query.text("searchTerm").map(str::to_owned),
        long_url: query.text("longUrl").map(LongUrl::from_stored),
        tags: tags("tags"),
        tags_mode,
        exclude_tags: tags("excludeTags"),
        exclude_tags_mode,
        since,
        until,
        deleted,
        exclude_past,
        exclude_spent,
        order,
        page,
        per_page,
        ..Filter::default()
    };
    Ok(Wanted { filter, by_code })
}

fn whole_second(time: Timestamp) -> Timestamp {
    if time.subsec_nanosecond() != 0 {
        return time;
    }
    time.checked_add(SignedDuration::from_millis(999)).unwrap_or(time)
}

fn read_mode(text: Option<&str>) -> Result<TagsMode, String> {
    match text {
        None | Some("any") => Ok(TagsMode::Any),
        Some("all") => Ok(TagsMode::All),
        _ => Err("expected any or all".to_owned()),
    }
}

/// The order, and whether it is that of codes, and then whether the last one comes first.
fn read_order(text: Option<&str>) -> Result<(OrderBy, Option<bool>), String> {
    let Some(text) = text else { return Ok((OrderBy::default(), None)) };
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
        // No visits are kept by this version, so all links have as many.
        "visits" | "nonBotVisits" => OrderField::Id,
        "shortCode" => return Ok((OrderBy { field: OrderField::Id, descending }, Some(descending))),
        _ => return Err(ORDERS.to_owned()),
    };
    Ok((OrderBy { field, descending }, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart_by_links_and_by_bytes() {
        let entries = |bytes: &[u64]| {
            let entry = |(id, bytes): (usize, &u64)| {
                let id = LinkId::from_stored(i64::try_from(id).unwrap());
                Outlined { id, bytes: *bytes, slug: None }
            };
            bytes.iter().enumerate().map(entry).collect::<Vec<_>>()
        };
        let lens = |bytes: &[u64]| pieces(&entries(bytes)).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(lens(&[]), [0; 0]);
        assert_eq!(lens(&[100; 300]), [256, 44]);
        assert_eq!(lens(&[100_000; 5]), [2, 2, 1]);
        assert_eq!(
            lens(&[PIECE_BYTES, 1, 1, 10 * PIECE_BYTES, 1]),
            [1, 2, 1, 1],
            "one that is too long is by itself"
        );
    }
}
