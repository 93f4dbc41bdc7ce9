//! `GET /rest/v3/short-urls`

use std::collections::BTreeSet;

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
    http::{Answer, App},
    links::{Filter, OrderBy, OrderField, Tag, TagsMode},
    store::PER_PAGE_MAX,
};

/// Links of a page, unless asked otherwise.
const PER_PAGE: u64 = 10;

/// Lists links.
pub(super) async fn list(app: &App, query: &Query) -> Result<Answer, Problem> {
    let filter = read(query)?;
    let code = filter.search.as_deref().and_then(|text| app.lookup.id_of(text));
    let paging = Paging { page: filter.page, per_page: filter.per_page };
    let page = app.store.list(&filter, code).await?;
    let links: Vec<_> = page.records.iter().filter_map(|record| ShortUrl::of(app, record)).collect();
    let pagination = pagination(paging, links.len(), page.total);
    Ok(json(&json!({ "shortUrls": { "data": links, "pagination": pagination } })))
}

fn read(query: &Query) -> Result<Filter, Problem> {
    let mut wrong = Wrong::default();
    let mut time = |name| {
        let read = query.text(name).map(fields::parse_time).transpose();
        wrong.note(name, read).flatten()
    };
    let (since, until) = (time("startDate"), time("endDate"));
    let mut mode = |name| wrong.note(name, read_mode(query.text(name))).unwrap_or_default();
    let (tags_mode, exclude_tags_mode) = (mode("tagsMode"), mode("excludeTagsMode"));
    let order = wrong.note("orderBy", read_order(query.text("orderBy"))).unwrap_or_default();
    let mut flag = |name| wrong.note(name, read_flag(query.text(name))).unwrap_or_default();
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
    Ok(Filter {
        search: query.text("searchTerm").map(str::to_owned),
        tags: tags("tags"),
        tags_mode,
        exclude_tags: tags("excludeTags"),
        exclude_tags_mode,
        since,
        until,
        exclude_past,
        exclude_spent,
        order,
        page,
        per_page,
    })
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

fn read_order(text: Option<&str>) -> Result<OrderBy, String> {
    let Some(text) = text else { return Ok(OrderBy::default()) };
    let (field, direction) = text.split_once('-').unwrap_or((text, "ASC"));
    let expected = "expected dateCreated, longUrl or title, with -ASC or -DESC behind it";
    let field = match field {
        "dateCreated" => OrderField::DateCreated,
        "longUrl" => OrderField::LongUrl,
        "title" => OrderField::Title,
        "shortCode" | "visits" | "nonBotVisits" => {
            return Err(format!("{expected}: this version has no other order"));
        }
        _ => return Err(expected.to_owned()),
    };
    match direction {
        "ASC" => Ok(OrderBy { field, descending: false }),
        "DESC" => Ok(OrderBy { field, descending: true }),
        _ => Err(expected.to_owned()),
    }
}
