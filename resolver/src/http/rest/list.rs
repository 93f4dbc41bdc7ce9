//! `GET /rest/v3/short-urls`

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    fields::{self, Wrong},
    json,
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
    short_url::ShortUrl,
};
use crate::{
    api_key::Grant,
    http::{Answer, App},
    links::{Domain, DomainId, Filter, OrderBy, OrderField, Page, Tag, TagsMode},
    store::PER_PAGE_MAX,
};

const ORDERS: &str =
    "expected dateCreated, shortCode, longUrl, title, visits or nonBotVisits, with -ASC or -DESC behind it";
/// Links of a page, unless asked otherwise.
pub(super) const PER_PAGE: u64 = 10;

/// Lists links.
pub(super) async fn list(app: &App, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let (page, paging) = list_records(app, query, by).await?;
    let links: Vec<_> = page.records.iter().filter_map(|record| ShortUrl::of(app, record)).collect();
    let pagination = pagination(paging, links.len(), page.total);
    Ok(json(&json!({ "shortUrls": { "data": links, "pagination": pagination } })))
}

/// The links that a query asks for.
pub(in crate::http) async fn list_records(
    app: &App,
    query: &Query,
    by: &Grant,
) -> Result<(Page, Paging), Problem> {
    let Wanted { mut filter, by_code } = read(query)?;
    let paging = Paging { page: filter.page, per_page: filter.per_page };
    if !narrow(app, query, by, &mut filter).await? {
        return Ok((Page { records: Vec::new(), total: 0 }, paging));
    }
    let code = filter.search.as_deref().and_then(|text| app.lookup.id_of(text));
    if let Some(text) = &filter.search {
        filter.search_domains = domains_like(app, text);
    }
    let Some(descending) = by_code else { return Ok((app.store.list(&filter, code).await?, paging)) };
    // No database can sort by what is computed from a number: a list that fits one page is sorted here.
    (filter.page, filter.per_page) = (1, Some(PER_PAGE_MAX));
    let mut all = app.store.list(&filter, code).await?;
    if all.total > PER_PAGE_MAX {
        let expected =
            format!("expected another order, or a filter that leaves at most {PER_PAGE_MAX} links");
        return Err(Problem::invalid("orderBy", expected));
    }
    all.records.sort_by_cached_key(|record| app.lookup.name_of(&record.link));
    if descending {
        all.records.reverse();
    }
    Ok((Page { records: paging.of(all.records), total: all.total }, paging))
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
        let keys = app.store.list_api_keys().await?;
        filter.created_by = Some(keys.iter().filter(|key| key.name == name).map(|key| key.id).collect());
    }
    if by.limits.own_links_only {
        let is_asked = filter.created_by.as_ref().is_none_or(|keys| keys.contains(&by.id));
        filter.created_by = Some(if is_asked { vec![by.id] } else { Vec::new() });
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

fn read(query: &Query) -> Result<Wanted, Problem> {
    let mut wrong = Wrong::default();
    let mut time = |name| {
        let read = query.text(name).map(fields::parse_time).transpose();
        wrong.note(name, read).flatten()
    };
    let (since, until) = (time("startDate"), time("endDate"));
    // Links are stored with fractions of a second and shown without: the whole second is within.
    let until = until.map(whole_second);
    let mut mode = |name| wrong.note(name, read_mode(query.text(name))).unwrap_or_default();
    let (tags_mode, exclude_tags_mode) = (mode("tagsMode"), mode("excludeTagsMode"));
    let (order, by_code) = wrong.note("orderBy", read_order(query.text("orderBy"))).unwrap_or_default();
    let mut flag = |name| wrong.note(name, read_flag(query.text(name))).unwrap_or_default();
    let deleted = flag("deleted");
    let exclude_past = flag("excludePastValidUntil");
    let exclude_spent = flag("excludeMaxVisitsReached");
    let page = wrong.note("page", Paging::page(query)).unwrap_or(1);
    let per_page = wrong.note("itemsPerPage", Paging::per_page(query, Some(PER_PAGE))).flatten();
    // Whoever asks for more, or for all, is told how many a page has, and how many pages there are.
    let per_page = Some(per_page.map_or(PER_PAGE_MAX, |count| count.min(PER_PAGE_MAX)));
    if query.has_nul() {
        wrong.note::<()>("(the query)", Err("expected no NUL".to_owned()));
    }
    wrong.check()?;
    // A tag that cannot be has no links: it is kept as it was written, and found nowhere.
    let tags = |name| {
        let tag = |text| Tag::parse(text).unwrap_or_else(|_| Tag::from_stored(text));
        let tags: BTreeSet<Tag> = query.list(name).map(tag).collect();
        tags.into_iter().collect()
    };
    let filter = Filter {
        search: query.text("searchTerm").map(str::to_owned),
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

fn read_flag(text: Option<&str>) -> Result<bool, String> {
    match text {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        _ => Err("expected true or false".to_owned()),
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
