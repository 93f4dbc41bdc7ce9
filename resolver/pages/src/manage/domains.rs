//! The domains with their settings. Each can be edited and removed in its row.
//!
//! A form is stored by one call of a use case, so that either all of its fields are stored or none.

use app::{AppError, FieldErrors, LinkService, NamedDomain, authorize::require_operator, values::Checked};
use askama::Template;
use links::{
    AppLinks, AppLinksFile, Authority, DomainEdit, ExtraPath, LongUrl, Protocol, QueryTemplate, Redirects,
    api_key::Grant, scope::Scope,
};
use web::Answer;

use super::{
    notices::{Notices, Refusal},
    paged::Paged,
};
use crate::{context::Context, error::PageError, form::Form, frame::Frame};

pub(super) const PATH: &str = "/manage/domains";
/// The fields of the fallback redirects, named as in the REST API. The column of each is
/// `domains-` with its name.
const REDIRECTS: [&str; 3] = ["baseUrlRedirect", "regular404Redirect", "invalidShortUrlRedirect"];

#[derive(Template)]
#[template(path = "manage/domains.html")]
struct DomainsPage<'a> {
    frame: Frame<'a>,
    domains: Vec<NamedDomain>,
    refused: Option<&'a Form>,
    paged: Paged,
    notices: Notices,
    columns: [String; 3],
    /// The redirects of domains that have none of their own.
    defaults: [String; 3],
    /// The files of app links with their labels.
    app_links: [(AppLinksFile, String); 2],
    /// Whether redirects, the scheme, which paths find links, where expired ones lead, which
    /// parameters redirects add, which apps open links, and whether visitors are kept may be
    /// edited. The use cases decide; so they do about the other changes.
    may_edit: bool,
    /// Whether a name may be changed, and a domain be enabled again.
    may_rename: bool,
    may_add: bool,
    may_remove: bool,
    new_domain: &'a str,
}

impl<'a> DomainsPage<'a> {
    /// Returns the form of a domain if it was refused, so that it is shown unfolded.
    fn refused_form(&self, domain: &NamedDomain) -> Option<&'a Form> {
        self.refused.filter(|form| form.get("domain") == Some(domain.name.as_str()))
    }
}

/// Returns where visitors of expired links are led, as the form has it.
fn expired_url(domain: &NamedDomain) -> &str {
    domain.settings.expired_url.as_ref().map_or("", LongUrl::as_str)
}

/// Returns the parameters that redirects add, as the form has them.
fn query_template(domain: &NamedDomain) -> &str {
    domain.settings.query_template.as_ref().map_or("", QueryTemplate::as_str)
}

/// Returns what was typed as a file of app links, or else what is stored, with line breaks.
fn typed_app_links(refused: &Option<&Form>, domain: &NamedDomain, file: &AppLinksFile) -> String {
    let stored = || domain.settings.app_links(*file).map(|links| format!("{:#}", links.value()));
    let typed = refused.map(|form| form.value(file.as_str()).to_owned());
    typed.or_else(stored).unwrap_or_default()
}

/// Returns what the form keeps of a stored file of app links, to tell whether it was edited.
fn app_links_digest(domain: &NamedDomain, file: &AppLinksFile) -> String {
    domain.settings.app_links(*file).map(AppLinks::digest).unwrap_or_default()
}

/// Returns what was typed in a field of a form that was refused, or else what is stored.
fn typed<'a>(refused: &Option<&'a Form>, field: &str, stored: &'a str) -> &'a str {
    refused.map_or(stored, |form| form.value(field))
}

/// The same for a checkbox.
fn is_checked(refused: &Option<&Form>, field: &str, is_stored: &bool) -> bool {
    refused.map_or(*is_stored, |form| form.is_on(field))
}

/// The same for a checkbox whose setting is stored as what it switches off.
fn is_on(refused: &Option<&Form>, field: &str, is_off: &bool) -> bool {
    is_checked(refused, field, &!is_off)
}

pub(super) async fn change(context: &Context<'_>) -> Result<(), AppError> {
    let (links, by, form) = (context.links, context.by, context.form);
    let name = form.value("domain");
    match form.get("do") {
        Some("add") => add(links, name, by).await,
        Some("remove") => links.remove_domain(name, by).await,
        _ => {
            let edit = read_edit(form, name, |url| links.check_long_url(url))?;
            links.edit_domain(name, &edit, by).await.map(drop)
        }
    }
}

/// Adds a domain by an edit that changes nothing, which is the use case that adds unknown ones.
async fn add(links: &LinkService, name: &str, by: &Grant) -> Result<(), AppError> {
    let checked = links.check_domain(name).map_err(|expected| AppError::invalid("domain", expected))?;
    let authority = checked.ok_or_else(|| AppError::DomainTaken(name.to_owned()))?;
    links.edit_domain_redirects(Some(authority), &DomainEdit::default(), by).await.map(drop)
}

/// Reads the form of a domain. A field that still has the value that the form was filled with stays
/// unchanged, so that nothing that was changed meanwhile is undone.
fn read_edit(
    form: &Form,
    name: &str,
    check_long_url: impl Fn(&str) -> Checked<LongUrl>,
) -> Result<DomainEdit, AppError> {
    let mut wrong = FieldErrors::default();
    let authority = form.get("name").map(str::trim).filter(|new| *new != name);
    let authority = authority.map(|new| Authority::parse(new).map_err(|error| error.to_string())).transpose();
    let is_changed = |name: &str| form.get(name).map(str::trim) != form.get(&format!("was-{name}"));
    let changed = |name: &str| form.get(name).filter(|_| is_changed(name));
    let switched = |name: &str| {
        let was_on = form.get(&format!("was-{name}")).is_some_and(|was| !was.is_empty());
        (was_on != form.is_on(name)).then(|| form.is_on(name))
    };
    let protocol = changed("protocol").map(|text| match text {
        "" => Ok(None),
        text => Protocol::parse(text).map(Some).ok_or_else(|| "expected http, https or no value".to_owned()),
    });
    let extra_path = changed("extraPath")
        .map(|name| ExtraPath::parse_for_domain(name).map(Some).map_err(|error| error.to_string()));
    let expired_url = changed("expiredUrl").map(str::trim).map(|url| match url {
        "" => Ok(None),
        url => check_long_url(url).map(Some),
    });
    let query_template = changed("queryTemplate").map(str::trim).map(|text| match text {
        "" => Ok(None),
        text => QueryTemplate::parse(text).map(Some).map_err(|error| error.to_string()),
    });
    let mut app_links = |file: AppLinksFile| wrong.note(file.as_str(), read_app_links(form, file)).flatten();
    let [apple_app_site_association, asset_links] = AppLinksFile::ALL.map(&mut app_links);
    let mut target = |field| {
        wrong.note(field, changed(field).map(LinkService::check_fallback_target).transpose()).flatten()
    };
    let [base_url, regular_404, invalid_short_url] = REDIRECTS.map(&mut target);
    let edit = DomainEdit {
        authority: wrong.note("name", authority).flatten(),
        disabled: switched("enabled").map(|is_on| !is_on),
        untracked: switched("trackVisitors").map(|is_on| !is_on),
        protocol: wrong.note("protocol", protocol.transpose()).flatten(),
        ignore_case: switched("ignoreCase"),
        ignore_trailing: switched("ignoreTrailing"),
        catch_all: switched("catchAll"),
        extra_path: wrong.note("extraPath", extra_path.transpose()).flatten(),
        expired_url: wrong.note("expiredUrl", expired_url.transpose()).flatten(),
        query_template: wrong.note("queryTemplate", query_template.transpose()).flatten(),
        cross_origin: switched("crossOrigin"),
        crawlable: switched("crawlable"),
        confirm_limited: switched("confirmLimited"),
        apple_app_site_association,
        asset_links,
        base_url,
        regular_404,
        invalid_short_url,
    };
    wrong.finish()?;
    Ok(edit)
}

/// Reads a file of app links. A file with the stored JSON is no change, whatever its white space.
fn read_app_links(form: &Form, file: AppLinksFile) -> Checked<Option<Option<AppLinks>>> {
    let Some(text) = form.get(file.as_str()) else { return Ok(None) };
    let typed = Some(text).filter(|text| !text.trim().is_empty());
    let typed =
        typed.map(|text| AppLinks::parse(file, text)).transpose().map_err(|error| error.to_string())?;
    let was = form.value(&format!("was-{}", file.as_str()));
    let is_changed = typed.as_ref().map(AppLinks::digest).unwrap_or_default() != was;
    Ok(is_changed.then_some(typed))
}

pub(super) async fn answer(context: &Context<'_>, refusal: Option<Refusal>) -> Result<Answer, PageError> {
    let (form, by) = (context.form, context.by);
    let domains = context.links.domains(true, by).await?;
    let (paged, domains) = Paged::cut(domains, PATH, context.query);
    let notices = Notices::new(context.query, refusal);
    // The typed text stays in its form.
    let refused =
        |what: &str| Some(form).filter(|_| notices.refusal.is_some() && form.get("do") == Some(what));
    let may_edit = context.allows(Scope::Admin) && !by.limits.own_links_only;
    let frame = context.frame(PATH);
    let page = DomainsPage {
        domains,
        refused: refused("edit"),
        columns: REDIRECTS.map(|field| frame.t.text(&format!("domains-{field}"))),
        defaults: texts(&context.pages.api.fallback_redirects),
        app_links: AppLinksFile::ALL.map(|file| (file, frame.t.text(&format!("domains-{}", file.as_str())))),
        may_edit,
        may_rename: may_edit && !by.limits.hides_links(),
        may_add: may_edit && by.limits.domain.is_none(),
        may_remove: require_operator(by).is_ok(),
        new_domain: refused("add").and_then(|form| form.get("domain")).unwrap_or_default(),
        paged,
        notices,
        frame,
    };
    Ok(context.page(page.notices.status(), &page))
}

/// Returns the targets of redirects as the form has them, in the order of [`REDIRECTS`].
fn texts(Redirects { base_url, regular_404, invalid_short_url }: &Redirects) -> [String; 3] {
    [base_url, regular_404, invalid_short_url].map(|target| target.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &Form, name: &str) -> Result<DomainEdit, AppError> {
        read_edit(form, name, |text| {
            let url = text.starts_with("https://").then(|| LongUrl::from_stored(text));
            url.ok_or_else(|| "expected a URL".to_owned())
        })
    }

    #[test]
    fn a_form_is_read_field_by_field() {
        let form = Form::parse(
            b"name=New.example&enabled=on&was-enabled=&was-trackVisitors=on&protocol=https&was-protocol=\
              &baseUrlRedirect=+https://e.org/+&was-baseUrlRedirect=&regular404Redirect=&was-regular404Redirect=x\
              &invalidShortUrlRedirect=kept&was-invalidShortUrlRedirect=kept&ignoreCase=on&was-ignoreCase=\
              &was-ignoreTrailing=on&catchAll=on&was-catchAll=&extraPath=append&was-extraPath=refuse\
              &expiredUrl=+https://e.org/over+&was-expiredUrl=&crossOrigin=on&was-crossOrigin=\
              &queryTemplate=+a%3D{code}+&was-queryTemplate=\
              &was-crawlable=on&confirmLimited=on&was-confirmLimited=&appleAppSiteAssociation=+\
              &was-appleAppSiteAssociation=x&assetLinks=[+]&was-assetLinks=",
        );
        let no_statements = AppLinks::parse(AppLinksFile::Android, "[]").unwrap();
        let expected = DomainEdit {
            authority: Authority::parse("new.example").ok(),
            disabled: Some(false),
            untracked: Some(true),
            protocol: Some(Some(Protocol::Https)),
            ignore_case: Some(true),
            ignore_trailing: Some(false),
            catch_all: Some(true),
            extra_path: Some(Some(ExtraPath::Append)),
            expired_url: Some(Some(LongUrl::from_stored("https://e.org/over"))),
            query_template: Some(QueryTemplate::parse("a={code}").ok()),
            cross_origin: Some(true),
            crawlable: Some(false),
            confirm_limited: Some(true),
            apple_app_site_association: Some(None),
            asset_links: Some(Some(no_statements.clone())),
            base_url: Some(Some("https://e.org/".to_owned())),
            regular_404: Some(None),
            invalid_short_url: None,
        };
        assert_eq!(read(&form, "old.example").unwrap(), expected);
        // The form of the default domain has neither a name nor a scheme.
        let edit = read(&Form::parse(b"was-enabled=on&was-trackVisitors=&trackVisitors=on"), "s.example");
        let edit = edit.unwrap();
        assert_eq!((edit.authority, edit.protocol, edit.disabled), (None, None, Some(true)));
        assert_eq!(edit.untracked, Some(false));
        let form = Form::parse(b"name=s.example&protocol=&was-protocol=https&enabled=on&was-enabled=on");
        assert_eq!(read(&form, "s.example").unwrap().disabled, None);
        let edit = read(&form, "s.example").unwrap();
        assert_eq!((edit.authority, edit.protocol), (None, Some(None)));
        let form = Form::parse(b"ignoreCase=on&was-ignoreCase=on&extraPath=append&was-extraPath=append");
        assert_eq!(read(&form, "s.example").unwrap(), DomainEdit::default());
        let form = Form::parse(b"expiredUrl=&was-expiredUrl=https://e.org/over");
        assert_eq!(read(&form, "s.example").unwrap().expired_url, Some(None));
        let form = Form::parse(b"queryTemplate=+&was-queryTemplate=a%3D1");
        assert_eq!(read(&form, "s.example").unwrap().query_template, Some(None));
        let form = format!("assetLinks=[%0D%0A]&was-assetLinks={}", no_statements.digest());
        assert_eq!(read(&Form::parse(form.as_bytes()), "s.example").unwrap(), DomainEdit::default());
    }

    #[test]
    fn every_wrong_field_is_named() {
        let form = Form::parse(
            b"name=a+b&protocol=ftp&extraPath=up&expiredUrl=/x&baseUrlRedirect=javascript:alert(1)\
              &appleAppSiteAssociation=[]&assetLinks=x&queryTemplate=a%3D{tag}",
        );
        let Err(error) = read(&form, "s.example") else { panic!("expected wrong fields") };
        let expected = [
            "appleAppSiteAssociation",
            "assetLinks",
            "baseUrlRedirect",
            "name",
            "protocol",
            "extraPath",
            "expiredUrl",
            "queryTemplate",
        ];
        assert_eq!(crate::messages::wrong_fields(&error), expected);
    }
}
