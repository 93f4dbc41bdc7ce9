//! The tags with the numbers of their links and visits. Each can be renamed and deleted in its row.

use std::collections::HashMap;

use app::{AppError, FieldErrors};
use askama::Template;
use links::{Tag, scope::Scope};
use store::{TagCount, VisitTotals};
use web::Answer;

use super::{
    notices::{Notices, Refusal},
    paged::Paged,
};
use crate::{context::Context, error::PageError, form::Form, frame::Frame};

pub(super) const PATH: &str = crate::addresses::TAGS;
/// The orders that the list can have, with the texts that name them.
const ORDERS: [(&str, &str); 3] = [
    ("tag-ASC", "tags-order-name"),
    ("shortUrlsCount-DESC", "tags-order-links"),
    ("visits-DESC", "order-visits"),
];

#[derive(Template)]
#[template(path = "manage/tags.html")]
struct TagsPage<'a> {
    frame: Frame<'a>,
    tags: Vec<TagCount>,
    visits: HashMap<Tag, VisitTotals>,
    paged: Paged,
    notices: Notices,
    query: &'a Form,
    may_rename: bool,
    may_delete: bool,
    may_count: bool,
    /// The form that was refused; empty without one.
    typed: &'a Form,
}

impl TagsPage<'_> {
    fn is_wrong(&self, tag: &Tag) -> bool {
        self.notices.refusal.is_some() && self.typed.get("tag") == Some(tag.as_str())
    }

    fn new_name<'s>(&'s self, tag: &'s Tag) -> &'s str {
        if self.is_wrong(tag) { self.typed.value("newName") } else { tag.as_str() }
    }

    fn visits_of(&self, tag: &Tag) -> u64 {
        self.visits.get(tag).map_or(0, |visits| visits.total)
    }
}

pub(super) async fn change(context: &Context<'_>) -> Result<(), AppError> {
    let (links, by, form) = (context.links, context.by, context.form);
    let name = form.value("tag");
    match form.get("do") {
        Some("delete") => links.delete_tags(std::iter::once(name), by).await,
        _ => links.rename_tag(Some(name), form.get("newName"), FieldErrors::default(), by).await,
    }
}

pub(super) async fn answer(context: &Context<'_>, refusal: Option<Refusal>) -> Result<Answer, PageError> {
    let (query, by, links) = (context.query, context.by, context.links);
    let (search, order) = (query.filled("search"), query.filled("order"));
    let tags = links.tags(search, order, by).await?;
    let (paged, tags) = Paged::cut(tags, PATH, query);
    let names: Vec<Tag> = tags.iter().map(|tag| tag.tag.clone()).collect();
    let visits = if names.is_empty() { HashMap::new() } else { links.tag_visit_totals(&names, by).await? };
    // The use cases decide. Tags belong to all links.
    let may_change = |scope| context.allows(scope) && !by.limits.hides_links();
    let page = TagsPage {
        frame: context.frame(PATH),
        tags,
        visits,
        query,
        may_rename: may_change(Scope::Edit),
        may_delete: may_change(Scope::Delete),
        may_count: context.allows(Scope::Visits),
        typed: context.form,
        paged,
        notices: Notices::new(query, refusal),
    };
    Ok(context.page(page.notices.status(), &page))
}
