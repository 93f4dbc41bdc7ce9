//! The tags with the numbers of their links and visits. Each can be renamed and deleted in its row.

use std::{collections::HashMap, sync::Arc};

use app::{AppError, FieldErrors};
use askama::Template;
use hyper::StatusCode;
use links::{Tag, api_key::Grant, scope::Scope};
use store::{TagCount, VisitTotals};
use web::Answer;

use super::paged::{Paged, address, is_stored, stored_address};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::{self, PageError},
    form::Form,
    frame::{Frame, Place},
    locale::Locale,
    request::PageRequest,
    session::Session,
};

/// The address of the page.
pub(super) const PATH: &str = "/manage/tags";
/// The orders that the list can have, with the texts that name them.
const ORDERS: [(&str, &str); 3] = [
    ("tag-ASC", "tags-order-name"),
    ("shortUrlsCount-DESC", "tags-order-links"),
    ("visits-DESC", "order-visits"),
];

/// The table of tags.
#[derive(Template)]
#[template(path = "manage/tags.html")]
struct TagsPage<'a> {
    frame: Frame<'a>,
    tags: Vec<ShownTag>,
    paged: Paged,
    query: &'a Form,
    /// Where the forms are sent to.
    action: String,
    orders: [(&'static str, &'static str); 3],
    may_rename: bool,
    may_delete: bool,
    may_count: bool,
    is_stored: bool,
    /// Why the form was refused.
    refused: Option<String>,
}

/// A tag in the table.
struct ShownTag {
    name: String,
    /// The number of links, with separators.
    links: String,
    links_count: u64,
    /// The number of visits, with separators.
    visits: String,
    /// The address of the list of its links.
    list: String,
    /// The address of its statistics.
    statistics: String,
    /// The value of the field for another name.
    new_name: String,
    /// Whether the new name was refused.
    is_wrong: bool,
}

impl TagsPage<'_> {
    /// Returns a field of the query.
    fn value(&self, name: &str) -> &str {
        self.query.get(name).unwrap_or("")
    }
}

impl ShownTag {
    /// Shows a tag with its visits.
    fn new(TagCount { tag, links }: &TagCount, visits: VisitTotals, t: &Locale) -> Self {
        let name = tag.as_str();
        let query = Form::default().query_with("tag", name);
        Self {
            name: name.to_owned(),
            links: t.number(links),
            links_count: *links,
            visits: t.number(&visits.total),
            list: format!("{}?{query}", super::PATH),
            statistics: format!("{}/statistics?of=tag&{query}", super::PATH),
            new_name: name.to_owned(),
            is_wrong: false,
        }
    }
}

/// Shows a page of the tags.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let shown = shown(pages, request, session).await?;
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}

/// Renames or deletes a tag, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (service, by, form) = (&pages.api.links, &session.grant, &request.form);
    let (name, new_name) = (form.get("tag").unwrap_or_default(), form.get("newName"));
    let changed = match form.get("do") {
        Some("delete") => service.delete_tags(std::iter::once(name), by).await,
        _ => service.rename_tag(Some(name), new_name, FieldErrors::default(), by).await,
    };
    let error = match changed {
        Ok(()) => return Ok(redirect(StatusCode::SEE_OTHER, &stored_address(PATH, &request.query))),
        Err(error @ (AppError::Invalid(_) | AppError::NoTag { .. } | AppError::TagConflict { .. })) => error,
        Err(error) => return Err(error.into()),
    };
    let mut shown = shown(pages, request, session).await?;
    shown.refused = Some(reason(&error, shown.frame.t));
    // What was typed stays in the form.
    for tag in shown.tags.iter_mut().filter(|tag| tag.name == name) {
        tag.is_wrong = true;
        new_name.unwrap_or_default().clone_into(&mut tag.new_name);
    }
    Ok(page(request.renderer, api::rest::status_of(&error), Forms::Stay, &shown))
}

/// Reads the tags that the query asks for.
async fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
) -> Result<TagsPage<'a>, PageError> {
    let (query, by, service) = (&request.query, &session.grant, &pages.api.links);
    let (search, order) = (query.owned("search"), query.owned("order"));
    let tags = service.tags(search.as_deref(), order.as_deref(), by).await?;
    let (paged, tags) = Paged::cut(tags, PATH, query);
    let names: Vec<Tag> = tags.iter().map(|tag| tag.tag.clone()).collect();
    let visits: HashMap<Tag, VisitTotals> =
        if names.is_empty() { HashMap::new() } else { service.tag_visit_totals(&names, by).await? };
    let frame = Frame::new(request, Some(session), Place::Tags);
    let visits_of = |tag: &TagCount| visits.get(&tag.tag).copied().unwrap_or_default();
    Ok(TagsPage {
        tags: tags.iter().map(|tag| ShownTag::new(tag, visits_of(tag), frame.t)).collect(),
        paged,
        query,
        action: address(PATH, query),
        orders: ORDERS,
        may_rename: may_change(by, Scope::Edit),
        may_delete: may_change(by, Scope::Delete),
        may_count: by.scopes.allow(Scope::Visits),
        is_stored: is_stored(query),
        refused: None,
        frame,
    })
}

/// Returns whether a change of tags is offered to a key. The use case decides.
fn may_change(by: &Grant, scope: Scope) -> bool {
    by.scopes.allow(scope) && !by.limits.hides_links()
}

/// Returns the text of an error that concerns the form.
fn reason(error: &AppError, t: &Locale) -> String {
    match error {
        AppError::Invalid(_) => t.text("tags-expected"),
        AppError::NoTag { tag } => t.with("tags-absent", tag),
        AppError::TagConflict { new, .. } => t.with("tags-taken", new),
        other => error::message(other, t),
    }
}
