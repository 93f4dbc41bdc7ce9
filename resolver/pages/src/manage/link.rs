//! One link: its values, in a form that changes them, and what can be done with it.
//!
//! The form carries the version of the link that it was filled from. If the link was changed
//! meanwhile, nothing is stored: the page shows the fields that were changed, both values beside
//! each other, and the form then carries the present version (`link_form.rs`).

use std::sync::Arc;

use app::{AppError, FieldErrors, edit_link::Target, find_link::LinkName};
use askama::Template;
use hyper::StatusCode;
use links::{Record, scope::Scope};
use web::Answer;

use super::{
    PATH,
    chosen::Choice,
    link_form::{Conflict, LinkForm},
    shown::ShownLink,
};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::{self, PageError},
    form::Form,
    frame::{Frame, Place},
    markup::Markup,
    qr_picture::qr_picture,
    request::PageRequest,
    session::Session,
};

#[derive(Template)]
#[template(path = "manage/link.html")]
struct LinkPage<'a> {
    frame: Frame<'a>,
    link: ShownLink,
    form: LinkForm,
    /// The version of the link that the form was filled from.
    version: u64,
    has_password: bool,
    qr_code: Markup,
    /// The path of the link on this host; `None` if it is on another domain.
    path: Option<String>,
    may_edit: bool,
    may_delete: bool,
    /// Why the form was refused, or that it was stored.
    notice: Notice,
    wrong_fields: Vec<String>,
    conflicts: Vec<Conflict>,
}

/// What became of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Notice {
    None,
    Stored,
    Refused(String),
}

impl LinkPage<'_> {
    fn value(&self, name: &str) -> &str {
        self.form.value(name)
    }

    fn is_on(&self, name: &str) -> bool {
        self.form.is_on(name)
    }

    /// Returns the name of a field for people.
    fn field(&self, name: &str) -> String {
        self.frame.t.try_text(&format!("field-{name}")).unwrap_or_else(|| name.to_owned())
    }

    fn is_wrong(&self, name: &str) -> bool {
        self.wrong_fields.iter().any(|field| field == name)
    }
}

/// Shows the page of a link.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
    name: &str,
) -> Result<Answer, PageError> {
    let record = pages.api.links.get_link(&link_name(request, name), &session.grant).await?;
    let notice = if request.query.is_on("stored") { Notice::Stored } else { Notice::None };
    let shown = shown(pages, request, session, (&record, notice)).await;
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}

/// Edits, deletes or restores a link, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
    name: &str,
) -> Result<Answer, PageError> {
    let (service, by) = (&pages.api.links, &session.grant);
    let name = link_name(request, name);
    match request.form.get("do") {
        Some("delete") => {
            service.delete_link(&Target { name: name.clone(), versions: None }, by).await?;
            let gone = Form::default().query_with("gone", &Choice(name).to_string());
            Ok(redirect(StatusCode::SEE_OTHER, &format!("{PATH}?{gone}")))
        }
        Some("restore") => {
            let record = service.restore_link(&name, by).await?;
            Ok(redirect(StatusCode::SEE_OTHER, &super::address(pages, &record.link)))
        }
        _ => edit(pages, request, session, name).await,
    }
}

async fn edit(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
    name: LinkName,
) -> Result<Answer, PageError> {
    let (service, by, zone) = (&pages.api.links, &session.grant, &pages.api.time_zone);
    let version = request.form.filled("version").and_then(|text| text.parse().ok());
    let target = Target { name: name.clone(), versions: version.map(|version| vec![version]) };
    let (form, mut wrong) = (LinkForm::read(&request.form), FieldErrors::default());
    let fields = form.changes(zone, &mut wrong);
    let error = match service.edit_link(&target, fields, wrong, by).await {
        Ok(record) => {
            let address = super::address(pages, &record.link);
            let separator = if address.contains('?') { '&' } else { '?' };
            return Ok(redirect(StatusCode::SEE_OTHER, &format!("{address}{separator}stored")));
        }
        Err(error @ (AppError::Invalid(_) | AppError::Superseded)) => error,
        Err(error) => return Err(error.into()),
    };
    let record = service.get_link(&name, by).await?;
    let notice = Notice::Refused(error::message(&error, request.preferences.locale));
    let mut shown = shown(pages, request, session, (&record, notice)).await;
    match &error {
        AppError::Invalid(fields) => {
            shown.wrong_fields = fields.iter().map(|field| field.field.clone()).collect();
            // The form still compares with what it was filled with, so that a change of another
            // person shows at the next attempt.
            shown.form = form;
            shown.version = version.unwrap_or(shown.version);
        }
        _ => (shown.form, shown.conflicts) = form.rebased(shown.form),
    }
    Ok(page(request.renderer, api::rest::status_of(&error), Forms::Stay, &shown))
}

fn link_name(request: &PageRequest<'_>, name: &str) -> LinkName {
    LinkName { code: name.to_owned(), domain: request.query.owned("domain") }
}

async fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
    (record, notice): (&Record, Notice),
) -> LinkPage<'a> {
    let frame = Frame::new(request, Some(session), Place::Links);
    let visits = pages.api.links.visit_totals_of(record).await;
    let (link, scopes) = (ShownLink::new(pages, record, visits, frame.t), &session.grant.scopes);
    LinkPage {
        form: LinkForm::of(record, &pages.api.time_zone),
        version: record.link.details.as_ref().map_or(0, |details| details.version),
        has_password: record.link.password().is_some(),
        qr_code: qr_picture(&link.short_url),
        path: link.domain.is_none().then(|| format!("/{}", link.name)),
        may_edit: scopes.allow(Scope::Edit),
        may_delete: scopes.allow(Scope::Delete),
        notice,
        wrong_fields: Vec::new(),
        conflicts: Vec::new(),
        frame,
        link,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LINK, address_of};

    #[test]
    fn names_of_links_are_escaped_in_addresses() {
        assert_eq!(address_of("aB3x9Q", None), format!("{LINK}aB3x9Q"));
        assert_eq!(
            address_of("a/b c?d", Some("s.example:80")),
            format!("{LINK}a/b%20c%3Fd?domain=s%2Eexample%3A80")
        );
    }
}
