//! The editor of a link's redirect rules, and an example visitor that shows where they lead.
//!
//! 1. Every form carries the version of the link that its page was made from. The list of rules is
//!    made from the link of that version, and stored for it alone. If the link has changed
//!    meanwhile, nothing is stored, and the page shows the present rules.
//! 2. Rules are checked by the use case that the REST API calls too. This page says its errors in
//!    words (`refusal.rs`).
//! 3. A change is undone as any edit of a link, by its entry in the log. The page offers that as
//!    long as the link is at the version that the change has made.
//! 4. The example is decided as a redirect is, by [`links::choose`] and the target rules.
//!
//! Rejected: forms that carry the whole list. A page would repeat up to two thousand conditions in
//! each of its forms, and an old page would undo the changes of others.

mod change;
mod example;
mod refusal;
mod shown;

use std::sync::Arc;

use app::{AppError, FieldErrors, authorize::require, edit_link::Target, find_link::LinkName};
use askama::Template;
use hyper::StatusCode;
use links::{
    Browser, CONDITION_TYPES, CONDITIONS_MAX, Device, Link, LongUrl, RULES_MAX, Record, Rule, scope::Scope,
};
use web::Answer;

use super::{
    history::{UNDO, version_field, version_made},
    notices::{Notices, Refusal},
    offer::{offered, offering},
    paged::{address, stored_address},
    shown::ShownLink,
};
use crate::{
    Pages,
    addresses::{LINKS, link_page},
    answer::redirect,
    context::Context,
    error::PageError,
    frame::Frame,
    locale::Locale,
};
use change::{Change, TypedIn};
use refusal::{reason, wrong_fields};
use shown::{NEW_RULE, RefusedForm, ShownExample, TypedForm, condition_text};

/// The beginning of the address of a link's rules; the link's name follows.
pub(super) const PATH: &str = "/manage/rules/";

#[derive(Template)]
#[template(path = "manage/rules.html")]
struct RulesPage<'a> {
    frame: Frame<'a>,
    context: Context<'a>,
    link: ShownLink,
    /// Where the forms of changes are sent to. It keeps the example.
    action: String,
    version: u64,
    rules: &'a [Rule],
    refused: Option<&'a RefusedForm>,
    types: Vec<(&'static str, String)>,
    values_text: String,
    may_edit: bool,
    may_undo: bool,
    notices: Notices,
    example: ShownExample,
}

impl<'a> RulesPage<'a> {
    /// Returns a form, the ids of whose fields end in `id`. What was typed stays if it was refused.
    fn form(&self, id: &str, typed_in: TypedIn) -> TypedForm<'a> {
        TypedForm { id: id.to_owned(), refused: self.refused.filter(|form| form.typed_in == typed_in) }
    }
}

pub(super) async fn show(context: &Context<'_>, name: &str) -> Result<Answer, PageError> {
    let link = read_link(context, &context.link_name(name), version_made(context.query)).await?;
    let page = page_of(context, &link, None, None);
    let is_wrong = page.example.lead.is_err();
    Ok(context.page(if is_wrong { StatusCode::BAD_REQUEST } else { StatusCode::OK }, &page))
}

/// Reads the link that a page is about, at least in this version.
async fn read_link(
    context: &Context<'_>,
    name: &LinkName,
    version: Option<u64>,
) -> Result<Arc<Link>, AppError> {
    let link = context.links.get_redirect_rules(name, context.by).await?;
    if version.is_none_or(|version| version <= link.version()) {
        return Ok(link);
    }
    // Another process has made the version, and the entry in this process's cache is older.
    context.pages.api.lookup.changed(link.id);
    context.links.get_redirect_rules(name, context.by).await
}

pub(super) async fn change(context: &Context<'_>, name: &str) -> Result<Answer, PageError> {
    let (by, links, form) = (context.by, context.links, context.form);
    require(by, Scope::Edit)?;
    let (name, api) = (context.link_name(name), &context.pages.api);
    let version: Option<u64> = form.filled("version").and_then(|text| text.parse().ok());
    let before = read_link(context, &name, version).await?;
    let read = || Change::read(form, before.rules());
    let target = Target { name: name.clone(), versions: Some(vec![before.version()]) };
    let wrong = FieldErrors::default();
    let stored = match read() {
        _ if version != Some(before.version()) => Err(AppError::Superseded),
        _ if form.get("do") == Some(UNDO) => {
            // At this version, the last edit is the one that made it.
            links.undo_edit(&target, None, wrong, by).await.map(|record| (record, None))
        }
        Some(Change { rules, place, .. }) => {
            let rules = Some(rules.into_iter().map(Ok).collect());
            let stored = links.set_redirect_rules(&target, rules, wrong, &api.time_zone, by).await;
            stored.map(|record| (record, place))
        }
        None => Err(AppError::invalid("do", "no change of a rule that exists")),
    };
    let error = match stored {
        Ok((record, place)) => {
            let mut stored = stored_address(context.request.path(), context.query);
            if record.link.version() != before.version() {
                let page = link_page(&context.pages.name_of(&record.link));
                stored = offering(context, &stored, &page, version_field(record.link.version()));
            }
            let anchor = place.map(|place| format!("#rule-{}", place + 1)).unwrap_or_default();
            return Ok(redirect(StatusCode::SEE_OTHER, &format!("{stored}{anchor}")));
        }
        Err(error) => error,
    };
    let change = read();
    let rules = change.as_ref().map_or(&[][..], |change| &change.rules[..]);
    let allows = |url: &str| api.lookup.allows(&LongUrl::from_stored(url));
    let text = reason(&error, rules, &allows, context.t);
    let refused = change.as_ref().and_then(|change| {
        let wrong = wrong_fields(&error, change);
        Some(RefusedForm { typed_in: change.typed_in?, typed: form.clone(), wrong })
    });
    let refusal = Refusal { text, ..Refusal::new(error, context.t)? };
    let link = links.get_redirect_rules(&name, by).await?;
    let page = page_of(context, &link, refused.as_ref(), Some(refusal));
    Ok(context.page(page.notices.status(), &page))
}

/// Makes the page of a link. What was typed in a form that was refused stays in it.
fn page_of<'a>(
    context: &Context<'a>,
    link: &'a Link,
    refused: Option<&'a RefusedForm>,
    refusal: Option<Refusal>,
) -> RulesPage<'a> {
    let (t, query) = (context.t, context.query);
    let (may_edit, mut notices) = (context.allows(Scope::Edit), Notices::new(query, refusal));
    let record = Record { link: link.clone(), tags: Vec::new() };
    let shown = ShownLink::new(context, &record, 0);
    let offer = offered(context, &link_page(&shown.name), &[UNDO]);
    let made = offer.as_ref().and_then(version_made);
    notices.is_stored &= offer.is_some();
    RulesPage {
        frame: context.frame(LINKS),
        context: *context,
        link: shown,
        action: address(context.request.path(), query),
        version: link.version(),
        rules: link.rules(),
        refused,
        types: CONDITION_TYPES.map(|kind| (kind, t.text(&format!("rules-type-{kind}")))).to_vec(),
        values_text: values_text(context.pages, t),
        may_edit,
        may_undo: may_edit && notices.is_stored && made == Some(link.version()),
        notices,
        example: ShownExample::new(context, link),
    }
}

fn values_text(pages: &Pages, t: &Locale) -> String {
    let names = t.with_two("rules-values", Device::NAMES.join(", "), Browser::NAMES.join(", "));
    let zone = pages.api.time_zone.iana_name().unwrap_or("UTC");
    let limits = t.with_two("rules-limits", zone, CONDITIONS_MAX.to_string());
    format!("{names} {limits}")
}
