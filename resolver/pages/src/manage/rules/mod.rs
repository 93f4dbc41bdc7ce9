//! The editor of a link's redirect rules, and an example visitor that shows where they lead.
//!
//! 1. Every form carries the version of the link that its page was made from. The list of rules is
//!    made from the link of that version, and stored for it alone. If the link has changed
//!    meanwhile, nothing is stored, and the page shows the present rules.
//! 2. Rules are checked by the use case that the REST API calls too. This page says its errors in
//!    words (`refusal.rs`).
//! 3. The example is decided as a redirect is, by [`links::choose`] and the target rules.
//!
//! Rejected: forms that carry the whole list. A page would repeat up to two thousand conditions in
//! each of its forms, and an old page would undo the changes of others.

mod change;
mod example;
mod refusal;
mod shown;

use std::sync::Arc;

use app::{
    AppError, FieldErrors, authorize::require, edit_link::Target, find_link::LinkName,
    redirect_rules::RuleFields,
};
use askama::Template;
use hyper::StatusCode;
use links::{
    Browser, CONDITION_TYPES, CONDITIONS_MAX, Device, Link, LongUrl, RULES_MAX, Record, api_key::Grant,
    scope::Scope,
};
use store::VisitTotals;
use web::Answer;

use super::{
    paged::{address, is_stored, stored_address},
    shown::ShownLink,
};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::PageError,
    frame::{Frame, Place},
    locale::Locale,
    request::PageRequest,
    session::Session,
};
use change::Change;
use refusal::{Sent, reason, wrong_fields};
use shown::{NEW_RULE, ShownExample, ShownRule, TypedForm};

/// The beginning of the address of a link's rules; the link's name follows.
pub(super) const PATH: &str = "/manage/rules/";

/// The rules of a link.
#[derive(Template)]
#[template(path = "manage/rules.html")]
struct RulesPage<'a> {
    frame: Frame<'a>,
    link: ShownLink,
    /// The address of this page without its query.
    path: &'a str,
    /// The domain that the query names, which the form of the example repeats.
    domain: Option<&'a str>,
    /// Where the forms of changes are sent to. It keeps the example.
    action: String,
    /// The version of the link that the rules are of.
    version: u64,
    rules: Vec<ShownRule>,
    new_rule: TypedForm,
    /// The types of conditions with their names.
    types: Vec<(&'static str, String)>,
    /// The values that the fields of conditions suggest.
    values: Vec<&'static str>,
    /// What the values of conditions may be.
    values_text: String,
    may_edit: bool,
    /// Why no rule can be added.
    full: Option<String>,
    is_stored: bool,
    /// Why the form was refused.
    refused: Option<String>,
    example: ShownExample,
}

/// Shows the rules.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
    name: &str,
) -> Result<Answer, PageError> {
    let name = link_name(request, name);
    let link = pages.api.links.get_redirect_rules(&name, &session.grant).await?;
    let shown = shown(pages, request, session, &link);
    let is_wrong = shown.example.refused.is_some();
    let status = if is_wrong { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Ok(page(request.renderer, status, Forms::Stay, &shown))
}

/// Changes the rules, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
    name: &str,
) -> Result<Answer, PageError> {
    let by = &session.grant;
    require(by, Scope::Edit)?;
    let name = link_name(request, name);
    let change = Change::read(&request.form);
    let version = request.form.filled("version").and_then(|text| text.parse().ok());
    let before = link_of_form(pages, &name, version, by).await?;
    let error = match store_change(pages, &name, (&before, version), change.as_ref(), by).await {
        Ok(()) => {
            let stored = stored_address(request.path(), &request.query);
            let place = change.as_ref().and_then(|change| change.place(before.rules().len()));
            let anchor = place.map(|place| format!("#rule-{}", place + 1)).unwrap_or_default();
            return Ok(redirect(StatusCode::SEE_OTHER, &format!("{stored}{anchor}")));
        }
        Err(error @ (AppError::Invalid(_) | AppError::Superseded)) => error,
        Err(error) => return Err(error.into()),
    };
    let link = pages.api.links.get_redirect_rules(&name, by).await?;
    let mut shown = shown(pages, request, session, &link);
    let sent = Sent {
        change: change.as_ref(),
        rules: change.as_ref().and_then(|change| change.apply(before.rules())).unwrap_or_default(),
        allows: &|url| pages.api.lookup.allows(&LongUrl::from_stored(url)),
    };
    shown.is_stored = false;
    shown.refused = Some(reason(&error, &sent, shown.frame.t));
    if let Some(change) = &change {
        keep_typed(&mut shown, change, wrong_fields(&error, change, before.rules()));
    }
    Ok(page(request.renderer, api::rest::status_of(&error), Forms::Stay, &shown))
}

/// Stores a change of the rules of a link, which has to be of the form's version.
async fn store_change(
    pages: &Pages,
    name: &LinkName,
    (link, version): (&Link, Option<u64>),
    change: Option<&Change>,
    by: &Grant,
) -> Result<(), AppError> {
    if version != Some(link.version()) {
        return Err(AppError::Superseded);
    }
    let rules: Option<Vec<RuleFields>> = change.and_then(|change| change.apply(link.rules()));
    let rules = rules.ok_or_else(|| AppError::invalid("do", "expected a change of a rule that exists"))?;
    let target = Target { name: name.clone(), versions: Some(vec![link.version()]) };
    let rules = rules.into_iter().map(Ok).collect();
    let (wrong, zone) = (FieldErrors::default(), &pages.api.time_zone);
    pages.api.links.set_redirect_rules(&target, Some(rules), wrong, zone, by).await.map(drop)
}

/// Reads the link that a form was made from.
async fn link_of_form(
    pages: &Pages,
    name: &LinkName,
    version: Option<u64>,
    by: &Grant,
) -> Result<Arc<Link>, AppError> {
    let link = pages.api.links.get_redirect_rules(name, by).await?;
    if version.is_none_or(|version| version <= link.version()) {
        return Ok(link);
    }
    // Another process has served the form, and the entry in this process's cache is older.
    pages.api.lookup.changed(link.id);
    pages.api.links.get_redirect_rules(name, by).await
}

/// Leaves what was typed in its form.
fn keep_typed(shown: &mut RulesPage<'_>, change: &Change, wrong: Vec<String>) {
    match change {
        Change::AddRule(typed) => shown.new_rule.keep(typed, wrong),
        Change::AddCondition(rule, typed) => {
            if let Some(rule) = shown.rules.get_mut(*rule) {
                rule.form.keep(typed, wrong);
            }
        }
        Change::Lead(rule, typed) => {
            if let Some(rule) = shown.rules.get_mut(*rule) {
                rule.lead_form.keep(typed, wrong);
            }
        }
        _ => {}
    }
}

/// Returns the name of the link whose rules are asked for.
fn link_name(request: &PageRequest<'_>, name: &str) -> LinkName {
    LinkName { code: name.to_owned(), domain: request.query.owned("domain") }
}

/// Makes the page of a link, with empty forms.
fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
    link: &Link,
) -> RulesPage<'a> {
    let frame = Frame::new(request, Some(session), Place::Links);
    let (t, api) = (frame.t, &pages.api);
    let record = Record { link: link.clone(), tags: Vec::new() };
    let rules = link.rules().iter().enumerate();
    let most = || t.with("rules-full", RULES_MAX.to_string());
    RulesPage {
        link: ShownLink::new(pages, &record, VisitTotals::default(), t),
        path: request.path(),
        domain: request.query.filled("domain"),
        action: address(request.path(), &request.query),
        version: link.version(),
        rules: rules
            .map(|(place, rule)| ShownRule::new(place, rule, api.lookup.allows(&rule.long_url), t))
            .collect(),
        new_rule: TypedForm::empty(NEW_RULE),
        types: CONDITION_TYPES.map(|kind| (kind, t.text(&format!("rules-type-{kind}")))).to_vec(),
        values: Device::NAMES.into_iter().chain(Browser::NAMES).collect(),
        values_text: values_text(pages, t),
        may_edit: session.grant.scopes.allow(Scope::Edit),
        full: (link.rules().len() >= RULES_MAX).then(most),
        is_stored: is_stored(&request.query),
        refused: None,
        example: ShownExample::new(pages, request, link),
        frame,
    }
}

/// Returns what the values of conditions may be.
fn values_text(pages: &Pages, t: &Locale) -> String {
    let names = t.with_two("rules-values", Device::NAMES.join(", "), Browser::NAMES.join(", "));
    let zone = pages.api.time_zone.iana_name().unwrap_or("UTC");
    let limits = t.with_two("rules-limits", zone, CONDITIONS_MAX.to_string());
    format!("{names} {limits}")
}
