//! The domains with their settings. Each can be edited and removed in its row.
//!
//! A form is stored by one call of a use case, so that either all of its fields are stored or none.

use std::sync::Arc;

use app::{AppError, FieldErrors, InvalidField, LinkService, NamedDomain, authorize::require_operator};
use askama::Template;
use hyper::StatusCode;
use links::{Authority, DomainEdit, DomainSettings, Protocol, Redirects, api_key::Grant, scope::Scope};
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
pub(super) const PATH: &str = "/manage/domains";
/// The fields of the fallback redirects, named as in the REST API. The column of each is
/// `domains-` with its name.
const REDIRECTS: [&str; 3] = ["baseUrlRedirect", "regular404Redirect", "invalidShortUrlRedirect"];

/// The table of domains.
#[derive(Template)]
#[template(path = "manage/domains.html")]
struct DomainsPage<'a> {
    frame: Frame<'a>,
    domains: Vec<ShownDomain>,
    paged: Paged,
    /// Where the forms are sent to.
    action: String,
    /// The names of the fallback redirects.
    columns: [String; 3],
    /// The redirects of domains that have none of their own.
    defaults: [String; 3],
    may: Changes,
    /// The name that was typed for another domain.
    new_domain: String,
    is_stored: bool,
    /// Why the form was refused.
    refused: Option<String>,
}

/// A domain in the table, with the values of its form.
struct ShownDomain {
    name: String,
    is_default: bool,
    /// The address of the list of its links.
    list: String,
    is_enabled: bool,
    is_tracked: bool,
    protocol: &'static str,
    redirects: [String; 3],
    form: DomainForm,
}

/// The values of a domain's form: those that are stored, or those that were refused.
struct DomainForm {
    name: String,
    is_enabled: bool,
    is_tracked: bool,
    protocol: String,
    redirects: [String; 3],
    /// Whether the form was refused, so that it is shown unfolded.
    is_refused: bool,
    wrong_fields: Vec<String>,
}

/// The changes that are offered to a key. The use cases decide.
#[derive(Clone, Copy)]
struct Changes {
    /// Redirects, the scheme, and whether visitors are kept.
    edit: bool,
    /// The name, and enabling a domain again.
    rename: bool,
    add: bool,
    remove: bool,
}

impl Changes {
    /// Returns what the scopes and limits of a key allow.
    fn of(by: &Grant) -> Self {
        let edit = by.scopes.allow(Scope::Admin) && !by.limits.own_links_only;
        Self {
            edit,
            rename: edit && !by.limits.hides_links(),
            add: edit && by.limits.domain.is_none(),
            remove: require_operator(by).is_ok(),
        }
    }
}

impl DomainForm {
    /// Returns whether a field was refused.
    fn is_wrong(&self, field: &str) -> bool {
        self.wrong_fields.iter().any(|wrong| wrong == field)
    }
}

impl DomainsPage<'_> {
    /// Returns the names of the fields of the fallback redirects.
    fn redirect_fields(&self) -> [&'static str; 3] {
        REDIRECTS
    }
}

impl ShownDomain {
    /// Shows a domain, its form filled with what is stored.
    fn new(NamedDomain { name, is_default, settings }: NamedDomain) -> Self {
        let DomainSettings { disabled, untracked, protocol, redirects, others: _ } = settings;
        let (protocol, redirects) = (protocol.map_or("", Protocol::as_str), texts(&redirects));
        let form = DomainForm {
            name: name.clone(),
            is_enabled: !disabled,
            is_tracked: !untracked,
            protocol: protocol.to_owned(),
            redirects: redirects.clone(),
            is_refused: false,
            wrong_fields: Vec::new(),
        };
        let list = format!("{}?{}", super::PATH, Form::default().query_with("domain", &name));
        Self {
            name,
            is_default,
            list,
            is_enabled: !disabled,
            is_tracked: !untracked,
            protocol,
            redirects,
            form,
        }
    }

    /// Keeps what was typed in the form.
    fn keep(&mut self, form: &Form, wrong_fields: Vec<String>) {
        let typed = |name: &str| form.get(name).unwrap_or_default().to_owned();
        self.form = DomainForm {
            name: form.get("name").unwrap_or(&self.name).to_owned(),
            is_enabled: form.is_on("enabled"),
            is_tracked: form.is_on("trackVisitors"),
            protocol: typed("protocol"),
            redirects: REDIRECTS.map(typed),
            is_refused: true,
            wrong_fields,
        };
    }
}

/// Shows a page of the domains.
pub(super) async fn show(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let shown = shown(pages, request, session).await?;
    Ok(page(request.renderer, StatusCode::OK, Forms::Stay, &shown))
}

/// Adds, edits or removes a domain, as the pressed button says.
pub(super) async fn change(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (service, by, form) = (&pages.api.links, &session.grant, &request.form);
    let name = form.get("domain").unwrap_or_default();
    let action = form.get("do");
    let changed = match action {
        Some("add") => add(pages, name, by).await,
        Some("remove") => service.remove_domain(name, by).await,
        _ => match read_edit(form, name) {
            Ok(edit) => service.edit_domain(name, &edit, by).await.map(drop),
            Err(error) => Err(error),
        },
    };
    let error = match changed {
        Ok(()) => return Ok(redirect(StatusCode::SEE_OTHER, &stored_address(PATH, &request.query))),
        Err(error) if concerns_form(&error) => error,
        Err(error) => return Err(error.into()),
    };
    let mut shown = shown(pages, request, session).await?;
    shown.refused = Some(reason(&error, shown.frame.t));
    match action {
        Some("add") => name.clone_into(&mut shown.new_domain),
        Some("remove") => {}
        _ => {
            for domain in shown.domains.iter_mut().filter(|domain| domain.name == name) {
                domain.keep(form, wrong_fields(&error));
            }
        }
    }
    Ok(page(request.renderer, api::rest::status_of(&error), Forms::Stay, &shown))
}

/// Adds a domain by an edit that changes nothing, which is the use case that adds unknown ones.
async fn add(pages: &Pages, name: &str, by: &Grant) -> Result<(), AppError> {
    let service = &pages.api.links;
    let checked = service.check_domain(name).map_err(|expected| AppError::invalid("domain", expected))?;
    let authority = checked.ok_or_else(|| AppError::DomainTaken { name: name.to_owned() })?;
    service.edit_domain_redirects(Some(authority), &DomainEdit::default(), by).await.map(drop)
}

/// Reads the form of a domain. A field that still has the value that the form was filled with stays
/// unchanged, so that nothing that was changed meanwhile is undone.
fn read_edit(form: &Form, name: &str) -> Result<DomainEdit, AppError> {
    let mut wrong = FieldErrors::default();
    let authority = form.get("name").map(str::trim).filter(|new| *new != name);
    let authority = authority.map(|new| Authority::parse(new).map_err(|error| error.to_string())).transpose();
    let is_changed = |name: &str| form.get(name).map(str::trim) != form.get(&format!("was-{name}"));
    let changed = |name: &str| form.get(name).filter(|_| is_changed(name));
    let switched = |name: &str| {
        let was_on = form.get(&format!("was-{name}")).is_some_and(|was| !was.is_empty());
        (was_on != form.is_on(name)).then(|| !form.is_on(name))
    };
    let protocol = changed("protocol").map(|text| match text {
        "" => Ok(None),
        text => Protocol::parse(text).map(Some).ok_or_else(|| "expected http, https or no value".to_owned()),
    });
    let mut target = |field| {
        wrong.note(field, changed(field).map(LinkService::check_fallback_target).transpose()).flatten()
    };
    let [base_url, regular_404, invalid_short_url] = REDIRECTS.map(&mut target);
    let edit = DomainEdit {
        authority: wrong.note("name", authority).flatten(),
        disabled: switched("enabled"),
        untracked: switched("trackVisitors"),
        protocol: wrong.note("protocol", protocol.transpose()).flatten(),
        base_url,
        regular_404,
        invalid_short_url,
    };
    wrong.finish()?;
    Ok(edit)
}

/// Reads the domains that the key may know of.
async fn shown<'a>(
    pages: &Pages,
    request: &'a PageRequest<'_>,
    session: &'a Session,
) -> Result<DomainsPage<'a>, PageError> {
    let (query, by) = (&request.query, &session.grant);
    let domains = pages.api.links.domains(true, by).await?;
    let (paged, domains) = Paged::cut(domains, PATH, query);
    let frame = Frame::new(request, Some(session), Place::Domains);
    Ok(DomainsPage {
        domains: domains.into_iter().map(ShownDomain::new).collect(),
        paged,
        action: address(PATH, query),
        columns: REDIRECTS.map(|field| column(field, frame.t)),
        defaults: texts(&pages.api.fallback_redirects),
        may: Changes::of(by),
        new_domain: String::new(),
        is_stored: is_stored(query),
        refused: None,
        frame,
    })
}

/// Returns the targets of redirects as the form has them, in the order of [`REDIRECTS`].
fn texts(Redirects { base_url, regular_404, invalid_short_url }: &Redirects) -> [String; 3] {
    [base_url, regular_404, invalid_short_url].map(|target| target.clone().unwrap_or_default())
}

/// Returns the name of a fallback redirect.
fn column(field: &str, t: &Locale) -> String {
    t.text(&format!("domains-{field}"))
}

/// Returns whether an error is shown on the page with the form that caused it.
fn concerns_form(error: &AppError) -> bool {
    matches!(
        error,
        AppError::Invalid(_)
            | AppError::NoDomain { .. }
            | AppError::DomainTaken { .. }
            | AppError::DomainInUse { .. }
            | AppError::TooManyDomains { .. }
            | AppError::MayNotAddDomain { .. }
    )
}

/// Returns the fields of the form that an error is about.
fn wrong_fields(error: &AppError) -> Vec<String> {
    match error {
        AppError::Invalid(fields) => fields.iter().map(|field| field.field.clone()).collect(),
        AppError::DomainTaken { .. } => vec!["name".to_owned()],
        _ => Vec::new(),
    }
}

/// Returns the text of an error that concerns the form.
fn reason(error: &AppError, t: &Locale) -> String {
    let expected = |field: &InvalidField| match field.field.as_str() {
        "name" => t.text("expected-domain"),
        name if REDIRECTS.contains(&name) => t.with("domains-expected-redirect", column(name, t)),
        _ => error::expected(field, t),
    };
    match error {
        AppError::Invalid(fields) => fields.iter().map(expected).collect::<Vec<_>>().join(" "),
        AppError::NoDomain { name } => t.with("domains-absent", name),
        AppError::DomainTaken { name } => t.with("domains-taken", name),
        other => error::message(other, t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_field_by_field() {
        let form = Form::parse(
            b"name=New.example&enabled=on&was-enabled=&was-trackVisitors=on&protocol=https&was-protocol=\
              &baseUrlRedirect=+https://e.org/+&was-baseUrlRedirect=&regular404Redirect=&was-regular404Redirect=x\
              &invalidShortUrlRedirect=kept&was-invalidShortUrlRedirect=kept",
        );
        let expected = DomainEdit {
            authority: Authority::parse("new.example").ok(),
            disabled: Some(false),
            untracked: Some(true),
            protocol: Some(Some(Protocol::Https)),
            base_url: Some(Some("https://e.org/".to_owned())),
            regular_404: Some(None),
            invalid_short_url: None,
        };
        assert_eq!(read_edit(&form, "old.example").unwrap(), expected);
        // The form of the default domain has neither a name nor a scheme.
        let edit =
            read_edit(&Form::parse(b"was-enabled=on&was-trackVisitors=&trackVisitors=on"), "s.example");
        let edit = edit.unwrap();
        assert_eq!((edit.authority, edit.protocol, edit.disabled), (None, None, Some(true)));
        assert_eq!(edit.untracked, Some(false));
        let form = Form::parse(b"name=s.example&protocol=&was-protocol=https&enabled=on&was-enabled=on");
        assert_eq!(read_edit(&form, "s.example").unwrap().disabled, None);
        let edit = read_edit(&form, "s.example").unwrap();
        assert_eq!((edit.authority, edit.protocol), (None, Some(None)));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let form = Form::parse(b"name=a+b&protocol=ftp&baseUrlRedirect=javascript:alert(1)");
        let Err(error) = read_edit(&form, "s.example") else { panic!("expected wrong fields") };
        assert_eq!(wrong_fields(&error), ["baseUrlRedirect", "name", "protocol"]);
    }
}
