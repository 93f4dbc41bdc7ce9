//! The home page: a long URL becomes a short link.

use app::{
    AppError, FieldErrors,
    create_link::{CreateLink, IdempotencyKey},
};
use askama::Template;
use hyper::StatusCode;
use limits::{ExceededShare, network};
use links::{
    DomainId, Record, Tag,
    api_key::{Grant, KeyLimits, OPERATOR, SecretNumber},
    scope::{Scope, Scopes},
};
use url::form_urlencoded;
use web::Answer;

use crate::{
    Pages,
    addresses::{CREATE, link_page},
    answer::page,
    error::PageError,
    form::Form,
    frame::Frame,
    link_input::{DomainChoices, mark, offered_tags, read_create, tags},
    markup::Markup,
    messages::{message, wrong_fields},
    request::PageRequest,
};

/// Fields that are folded away until one of them is filled in.
const OPTIONS: [&str; 10] = [
    "customSlug",
    "domain",
    "shortCodeLength",
    "validSince",
    "validUntil",
    "maxVisits",
    "password",
    "tags",
    "title",
    "fetchTitle",
];
/// The fields that are put into the long URL.
const UTM: [&str; 5] = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"];

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    frame: Frame<'a>,
    may_create: bool,
    /// Whether the visitor is no guest: guests choose neither tags nor a domain.
    has_session: bool,
    form: &'a Form,
    mark: String,
    refused: Option<&'a AppError>,
    domain_choices: DomainChoices,
    tags: Vec<Tag>,
}

#[derive(Template)]
#[template(path = "created.html")]
struct CreatedPage<'a> {
    frame: Frame<'a>,
    short_url: String,
    long_url: String,
    qr_code: Markup,
    /// The path of the link on this host; `None` if it is on another domain.
    path: Option<String>,
    ends: Option<String>,
    manage: Option<String>,
}

impl HomePage<'_> {
    fn is_wrong(&self, name: &str) -> bool {
        self.refused.is_some_and(|error| wrong_fields(error).iter().any(|field| field == name))
    }

    /// Returns whether an option is filled in, so that the options are shown unfolded.
    fn has_options(&self) -> bool {
        OPTIONS.iter().chain(&UTM).any(|name| self.form.filled(name).is_some())
    }
}

/// Shows the form, which was refused with an error if there is one.
pub(crate) async fn show(request: &PageRequest<'_>, refused: Option<&AppError>) -> Answer {
    let links = &request.pages.api.links;
    let (domain_choices, tags) = match &request.session {
        Some(session) => {
            (DomainChoices::of(links, &session.grant).await, offered_tags(links, &session.grant).await)
        }
        None => (DomainChoices::default(), Vec::new()),
    };
    let home = HomePage {
        frame: Frame::new(request, CREATE),
        may_create: creator(request).is_some_and(|by| by.scopes.allow(Scope::Create)),
        has_session: request.session.is_some(),
        // A link of the form's own address, such as a bookmark makes it, fills the field.
        form: if refused.is_some() { &request.form } else { &request.query },
        mark: mark(),
        refused,
        domain_choices,
        tags,
    };
    let status = refused.map_or(StatusCode::OK, api::rest::status_of);
    page(&request.pages.renderer, status, &home)
}

pub(crate) async fn submit(request: &PageRequest<'_>) -> Result<Answer, PageError> {
    let by = creator(request).ok_or(PageError::NoSession)?;
    Ok(match create(request, &by).await {
        Ok(record) => created_page(request, &record),
        Err(error) => show(request, Some(&error)).await,
    })
}

/// Creates the link of a form.
pub(crate) async fn create(request: &PageRequest<'_>, by: &Grant) -> Result<Record, AppError> {
    let (pages, is_public) = (request.pages, request.session.is_none());
    if is_public && pages.creates.spend(network(request.client)).is_err() {
        return Err(AppError::TooMuchAtOnce(ExceededShare::Own));
    }
    let mut wrong = FieldErrors::default();
    let mut command = read_form(pages, &request.form, &mut wrong);
    if is_public {
        // They belong to those who have a key: names of domains reveal other tenants.
        (command.domain, command.fields.tags, command.fetch_title) = (None, None, false);
    }
    pages.api.links.create_link(command, idempotency(&request.form)?, wrong, by).await
}

fn created_page(request: &PageRequest<'_>, record: &Record) -> Answer {
    let pages = request.pages;
    let (link, api) = (&record.link, &pages.api);
    let (name, short_url) = (api.lookup.name_of(link).unwrap_or_default(), pages.short_url(link));
    let ends = link.details.as_ref().and_then(|details| details.valid_until);
    let reads = request.session.as_ref().is_some_and(|session| session.grant.scopes.allow(Scope::Read));
    let created = CreatedPage {
        frame: Frame::new(request, CREATE),
        long_url: link.long_url.as_str().to_owned(),
        qr_code: Markup::qr_code(&short_url),
        path: link.domain().is_default().then(|| format!("/{name}")),
        ends: ends.map(|time| pages.shown_time(&time)),
        manage: reads.then(|| link_page(&pages.name_of(link))),
        short_url,
    };
    page(&pages.renderer, StatusCode::OK, &created)
}

/// Returns who creates: the session's key, or the public if it may.
fn creator(request: &PageRequest<'_>) -> Option<Grant> {
    let grant = request.session.as_ref().map(|session| session.grant.clone());
    grant.or_else(|| request.pages.public_create.then(public))
}

/// Returns the grant of visitors without a key: they create links, and see none.
fn public() -> Grant {
    Grant {
        id: OPERATOR,
        secret: SecretNumber(0),
        name: "public".into(),
        scopes: Scopes::only(Scope::Create),
        limits: KeyLimits { own_links_only: true, domain: Some(DomainId::DEFAULT), ..KeyLimits::default() },
    }
}

fn read_form(pages: &Pages, form: &Form, wrong: &mut FieldErrors) -> CreateLink {
    let mut command = read_create(&pages.api, |field| form.filled(field.name()), tags, wrong);
    if let Some(Some(long_url)) = &mut command.fields.long_url {
        *long_url = with_utm(long_url, form);
    }
    command.fetch_title = form.is_on("fetchTitle");
    let password = form.get("password").filter(|text| !text.is_empty());
    command.fields.password = password.map(|text| Some(text.to_owned()));
    command
}

/// Puts the campaign's fields into a long URL, before its fragment.
fn with_utm(url: &str, form: &Form) -> String {
    let pairs: Vec<(&str, &str)> = UTM.iter().filter_map(|name| Some((*name, form.filled(name)?))).collect();
    if pairs.is_empty() {
        return url.to_owned();
    }
    let (rest, fragment) = url.split_once('#').map_or((url, None), |(rest, end)| (rest, Some(end)));
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let separator = match rest.split_once('?') {
        None => "?",
        Some((_, has)) if has.is_empty() || has.ends_with('&') => "",
        Some(_) => "&",
    };
    let fragment = fragment.map(|end| format!("#{end}")).unwrap_or_default();
    format!("{rest}{separator}{query}{fragment}")
}

/// Returns the idempotency key of the form; `None` for a form without a mark.
fn idempotency(form: &Form) -> Result<Option<IdempotencyKey>, AppError> {
    let Some(mark) = form.filled("mark") else { return Ok(None) };
    // The password is not part of the digest, which would reveal it. Whether there is one is.
    let has_password = !form.value("password").is_empty();
    let request = form.without(&["password", "formToken", "mark"]).query();
    let request = format!("{request}&hasPassword={has_password}");
    IdempotencyKey::new(format!("page-{mark}").as_bytes(), request).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaign_fields_are_put_before_the_fragment() {
        let form = Form::parse(b"utm_source=a+b&utm_medium=&utm_campaign=x%26y");
        for (url, expected) in [
            ("https://e.org/", "https://e.org/?utm_source=a+b&utm_campaign=x%26y"),
            ("https://e.org/?q=1#top", "https://e.org/?q=1&utm_source=a+b&utm_campaign=x%26y#top"),
            ("https://e.org/?", "https://e.org/?utm_source=a+b&utm_campaign=x%26y"),
        ] {
            assert_eq!(with_utm(url, &form), expected);
        }
        assert_eq!(with_utm("mailto:a@e.org", &Form::default()), "mailto:a@e.org");
    }
}
