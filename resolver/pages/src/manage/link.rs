//! One link: its values, in a form that changes them, and what can be done with it.
//!
//! The form carries the version of the link that it was filled from. If another one has changed the
//! link meanwhile, nothing is stored: the page shows each field that differs, both values beside
//! each other, and the form then carries the present version.

use std::sync::Arc;

use app::{
    AppError, FieldErrors, LinkFields, edit_link::Target, find_link::LinkName, local_time::local_time,
};
use askama::Template;
use hyper::StatusCode;
use jiff::Timestamp;
use links::{Link, Record, scope::Scope};
use url::form_urlencoded;
use web::Answer;

use super::{PATH, shown::ShownLink};
use crate::{
    Pages,
    answer::{Forms, page, redirect},
    error::{self, PageError},
    form::Form,
    frame::{Frame, Place},
    home::tags,
    markup::Markup,
    request::PageRequest,
    session::Session,
};

/// The fields of the form that are checkboxes; the others are texts.
const CHECKBOXES: [&str; 3] = ["crawlable", "forwardQuery", "enabled"];
const QR_OPTIONS: &str = "size=240&margin=12&format=svg";

#[derive(Template)]
#[template(path = "manage/link.html")]
struct LinkPage<'a> {
    frame: Frame<'a>,
    link: ShownLink,
    values: Vec<(&'static str, String)>,
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

/// A field that somebody else has changed meanwhile.
struct Conflict {
    field: String,
    yours: String,
    theirs: String,
}

impl LinkPage<'_> {
    fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(has, _)| *has == name).map_or("", |(_, value)| value.as_str())
    }

    fn is_on(&self, name: &str) -> bool {
        !self.value(name).is_empty()
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
            service.delete_link(&Target { name, versions: None }, by).await?;
            Ok(redirect(StatusCode::SEE_OTHER, PATH))
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
    let (service, by) = (&pages.api.links, &session.grant);
    let version = request.form.filled("version").and_then(|text| text.parse().ok());
    let target = Target { name: name.clone(), versions: version.map(|version| vec![version]) };
    let mut wrong = FieldErrors::default();
    let fields = fields(pages, &request.form, &mut wrong);
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
    if let AppError::Invalid(fields) = &error {
        shown.wrong_fields = fields.iter().map(|field| field.field.clone()).collect();
    } else {
        shown.conflicts = conflicts(&shown.values, &request.form, shown.frame);
    }
    // What was typed stays in the form.
    for (name, value) in &mut shown.values {
        if CHECKBOXES.contains(name) {
            *value = checkbox(request.form.is_on(name));
        } else if let Some(typed) = request.form.get(name) {
            typed.clone_into(value);
        }
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
    let options = qr::QrOptions::read(form_urlencoded::parse(QR_OPTIONS.as_bytes()));
    let qr_code = options.and_then(|options| qr::render(&link.short_url, &options));
    LinkPage {
        values: values(pages, record),
        version: record.link.details.as_ref().map_or(0, |details| details.version),
        has_password: record.link.password().is_some(),
        qr_code: qr_code.map(|image| Markup::of_qr_code(&image)).unwrap_or_default(),
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

/// Returns the values of a link as the form has them.
fn values(pages: &Pages, record: &Record) -> Vec<(&'static str, String)> {
    let Link { long_url, title, crawlable, forward_query, details, .. } = &record.link;
    let details = details.as_deref();
    let time = |time: Option<Timestamp>| time.map(|time| form_time(pages, time)).unwrap_or_default();
    let tags: Vec<String> = record.tags.iter().map(ToString::to_string).collect();
    vec![
        ("longUrl", long_url.as_str().to_owned()),
        ("title", title.clone().unwrap_or_default()),
        ("description", details.and_then(|details| details.description.clone()).unwrap_or_default()),
        ("tags", tags.join(", ")),
        ("validSince", time(details.and_then(|details| details.valid_since))),
        ("validUntil", time(details.and_then(|details| details.valid_until))),
        (
            "maxVisits",
            details.and_then(|details| details.max_visits).map(|n| n.to_string()).unwrap_or_default(),
        ),
        ("crawlable", checkbox(*crawlable)),
        ("forwardQuery", checkbox(*forward_query)),
        ("enabled", checkbox(!details.is_some_and(|details| details.disabled))),
    ]
}

fn checkbox(is_on: bool) -> String {
    if is_on { "on".to_owned() } else { String::new() }
}

/// Formats a time as fields of the type `datetime-local` have it, in the zone of the service. Seconds
/// are kept, so that a form that is sent unchanged changes nothing.
fn form_time(pages: &Pages, time: Timestamp) -> String {
    time.to_zoned(pages.api.time_zone.clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Reads the form. An empty text removes the value; a password is removed by its checkbox.
fn fields(pages: &Pages, form: &Form, wrong: &mut FieldErrors) -> LinkFields {
    let text = |name: &str| form.get(name).map(|_| form.owned(name));
    let mut time = |name: &str| {
        let text = form.get(name)?;
        if text.trim().is_empty() {
            return Some(None);
        }
        let read = local_time(text.trim(), &pages.api.time_zone)
            .ok_or_else(|| "expected a date and a time".to_owned());
        wrong.note(name, read).map(Some)
    };
    let (valid_since, valid_until) = (time("validSince"), time("validUntil"));
    let max_visits = text("maxVisits").and_then(|text| match text {
        None => Some(None),
        Some(text) => {
            wrong.note("maxVisits", text.parse().map_err(|_| "expected a number".to_owned())).map(Some)
        }
    });
    let password = match form.get("password").filter(|text| !text.is_empty()) {
        Some(password) => Some(Some(password.to_owned())),
        None => form.is_on("removePassword").then_some(None),
    };
    LinkFields {
        // An edit cannot remove the long URL, and an empty one is refused.
        long_url: form.get("longUrl").map(|url| Some(url.trim().to_owned())),
        title: text("title"),
        description: text("description"),
        tags: form.get("tags").map(|text| Some(tags(text))),
        valid_since,
        valid_until,
        max_visits,
        crawlable: Some(Some(form.is_on("crawlable"))),
        forward_query: Some(Some(form.is_on("forwardQuery"))),
        enabled: Some(Some(form.is_on("enabled"))),
        password,
        ..LinkFields::default()
    }
}

/// Returns the fields whose present values differ from those of the form.
fn conflicts(present: &[(&'static str, String)], form: &Form, frame: Frame<'_>) -> Vec<Conflict> {
    let differs = |(name, theirs): &(&'static str, String)| {
        let yours = match CHECKBOXES.contains(name) {
            true => checkbox(form.is_on(name)),
            false => form.get(name).unwrap_or_default().to_owned(),
        };
        let field = frame.t.try_text(&format!("field-{name}")).unwrap_or_else(|| (*name).to_owned());
        (yours != *theirs).then(|| Conflict { field, yours, theirs: theirs.clone() })
    };
    present.iter().filter_map(differs).collect()
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
