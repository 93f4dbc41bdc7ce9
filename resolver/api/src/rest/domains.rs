//! `/rest/v3/domains`
//!
//! Shlink has the list and the redirects. Editing the other settings of a domain, and removing it,
//! are additions. Who may do what is decided in `app/src/links/domains.rs`.

use app::{LinkService, NamedDomain};
use dto::{Flag, Patch};
use links::{
    AppLinks, AppLinksFile, Authority, DomainEdit, ExtraPath, LongUrl, Protocol, QueryTemplate, Redirects,
};
use serde_json::Value;

use super::prelude::*;

const DOMAINS: &str = "/rest/v3/domains";
const REDIRECTS: &str = "/rest/v3/domains/redirects";
const DOMAIN: &str = "/rest/v3/domains/{domain}";
/// Maximum length of the body of an edit: two files of app links, and all other fields.
const EDIT_BYTES: usize = 2 * AppLinks::MAX_LEN + 64 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, DOMAINS, keyed!(Scope::Read, list))
            .document("listDomains", Topic::Domains, "List domains")
            .text("The default domain first, which the operator names with `--public-url`, then the others by name. A key of one domain sees that one only, and a key of its own links those that they are on. A domain without links and settings is left out.")
            .query::<dto::DomainsQuery>()
            .answers::<dto::DomainList>("All domains."),
        Route::new(Method::PATCH, REDIRECTS, keyed!(Scope::Admin, edit_redirects))
            .document("editDomainRedirects", Topic::Domains, "Edit where a domain sends visitors that no link redirects")
            .text("Visitors of the domain itself, of paths that cannot be codes, and of codes without a link. An unknown domain is added. Absent fields stay as they are; null removes a redirect.")
            .body::<dto::DomainRedirectsEdit>()
            .answers::<dto::DomainRedirects>("The redirects after the edit.")
            .fails(&[Kind::NoDomain, Kind::TooManyDomains]),
        Route::new(Method::PATCH, DOMAIN, keyed!(Scope::Admin, edit))
            .body_bytes(EDIT_BYTES)
            .document("editDomain", Topic::Domains, "Edit a domain")
            .addition()
            .text("Its name, which its links follow; whether its links redirect; the scheme of its short URLs; which paths find a link that differ from its name; where visitors of expired links are led; which parameters redirects add; and which apps open its links. A body has at most 320 KiB. Name and scheme of the default domain are those of `--public-url`, and cannot be edited here.")
            .optional_body::<dto::DomainEdit>()
            .answers::<dto::Domain>("The domain after the edit.")
            .fails(&[Kind::DomainTaken]),
        Route::new(Method::DELETE, DOMAIN, keyed!(Scope::Admin, remove))
            .document("removeDomain", Topic::Domains, "Remove a domain")
            .addition()
            .text("The domain must have no links, and no key may be limited to it. Links that were deleted on it cannot be restored.")
            .done("The domain is removed.")
            .fails(&[Kind::DomainInUse]),
    ]
}

impl Fields for dto::DomainsQuery {}
impl Fields for dto::DomainRedirectsEdit {}
impl Fields for dto::DomainEdit {}

const NAME: &str = app::Field::Domain.name();
const A_DOMAIN: &str = "expected a string with a domain";
const A_PROTOCOL: &str = "expected http, https or null";
const EXTRA_PATH: &str = app::Field::ExtraPath.name();
const EXPIRED_URL: &str = app::Field::ExpiredUrl.name();

async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::DomainsQuery { all: Flag(all) }, wrong): (_, FieldErrors) = call.query();
    wrong.finish()?;
    let domains = call.api.links.domains(all, by).await?;
    let default_redirects = redirects(&call.api.fallback_redirects);
    let data = domains.iter().map(shown).collect();
    Ok(json(&dto::DomainList { domains: dto::DomainData { data, default_redirects } }))
}

fn shown(NamedDomain { name, is_default, settings }: &NamedDomain) -> dto::Domain<'_> {
    dto::Domain {
        domain: name,
        is_default: *is_default,
        redirects: redirects(&settings.redirects),
        enabled: !settings.disabled,
        track_visitors: !settings.untracked,
        protocol: settings.protocol.map(Protocol::as_str),
        ignore_case: settings.ignore_case,
        ignore_trailing: settings.ignore_trailing,
        catch_all: settings.catch_all,
        extra_path: settings.extra_path.map(ExtraPath::as_str),
        expired_url: settings.expired_url.as_ref().map(LongUrl::as_str),
        query_template: settings.query_template.as_ref().map(QueryTemplate::as_str),
        cross_origin: settings.cross_origin,
        crawlable: settings.crawlable,
        confirm_limited: settings.confirm_limited,
        apple_app_site_association: settings.apple_app_site_association.as_ref().map(AppLinks::value),
        asset_links: settings.asset_links.as_ref().map(AppLinks::value),
    }
}

fn redirects(of: &Redirects) -> dto::DomainRedirects<'_> {
    dto::DomainRedirects {
        base_url_redirect: of.base_url.as_deref(),
        regular_404_redirect: of.regular_404.as_deref(),
        invalid_short_url_redirect: of.invalid_short_url.as_deref(),
    }
}

/// Edits the redirects of a domain. As in Shlink, an unknown domain is added.
async fn edit_redirects(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let links = &call.api.links;
    let (fields, mut wrong): (dto::DomainRedirectsEdit, FieldErrors) = call.fields()?;
    let name = fields.domain.ok_or_else(|| A_DOMAIN.to_owned());
    let name = wrong.note(NAME, name.and_then(|name| links.check_domain(&name)));
    let mut redirect = |field, target: Patch<String>| {
        let target = target
            .change()
            .map(|target| target.map_or(Ok(None), |text| LinkService::check_fallback_target(&text)));
        wrong.note(field, target.transpose()).flatten()
    };
    let edit = DomainEdit {
        base_url: redirect("baseUrlRedirect", fields.base_url_redirect),
        regular_404: redirect("regular404Redirect", fields.regular_404_redirect),
        invalid_short_url: redirect("invalidShortUrlRedirect", fields.invalid_short_url_redirect),
        ..DomainEdit::default()
    };
    wrong.finish()?;
    let domain = links.edit_domain_redirects(name.ok_or(Problem::INTERNAL)?, &edit, by).await?;
    Ok(json(&redirects(&domain.settings.redirects)))
}

async fn edit(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (fields, mut wrong): (dto::DomainEdit, FieldErrors) = call.fields()?;
    let authority = match fields.domain {
        Patch::Absent => Ok(None),
        Patch::Null => Err(A_DOMAIN.to_owned()),
        Patch::Set(name) => Authority::parse(&name).map(Some).map_err(|error| error.to_string()),
    };
    let protocol = fields.protocol.try_change(|name| Protocol::parse(&name).ok_or(A_PROTOCOL.to_owned()));
    let extra_path = fields
        .extra_path
        .try_change(|name| ExtraPath::parse_for_domain(&name).map_err(|error| error.to_string()));
    let links = &call.api.links;
    let expired_url = fields.expired_url.try_change(|url| links.check_long_url(&url));
    let query_template = fields
        .query_template
        .try_change(|text| QueryTemplate::parse(&text).map_err(|error| error.to_string()));
    let mut app_links = |file: AppLinksFile, value: Patch<Value>| {
        let read = |value| AppLinks::new(file, &value).map_err(|error| error.to_string());
        wrong.note(file.as_str(), value.try_change(read)).flatten()
    };
    let apple_app_site_association = app_links(AppLinksFile::Apple, fields.apple_app_site_association);
    let asset_links = app_links(AppLinksFile::Android, fields.asset_links);
    let edit = DomainEdit {
        authority: wrong.note(NAME, authority).flatten(),
        disabled: fields.enabled.value().map(|Flag(enabled)| !enabled),
        untracked: fields.track_visitors.value().map(|Flag(tracks)| !tracks),
        protocol: wrong.note("protocol", protocol).flatten(),
        ignore_case: fields.ignore_case.value().map(|Flag(ignores)| ignores),
        ignore_trailing: fields.ignore_trailing.value().map(|Flag(ignores)| ignores),
        catch_all: fields.catch_all.value().map(|Flag(catches)| catches),
        extra_path: wrong.note(EXTRA_PATH, extra_path).flatten(),
        expired_url: wrong.note(EXPIRED_URL, expired_url).flatten(),
        query_template: wrong.note("queryTemplate", query_template).flatten(),
        cross_origin: fields.cross_origin.value().map(|Flag(allows)| allows),
        crawlable: fields.crawlable.value().map(|Flag(allows)| allows),
        confirm_limited: fields.confirm_limited.value().map(|Flag(asks)| asks),
        apple_app_site_association,
        asset_links,
        ..DomainEdit::default()
    };
    wrong.finish()?;
    Ok(json(&shown(&links.edit_domain(&call.parameter(), &edit, by).await?)))
}

async fn remove(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    if call.parameters[0] == "redirects" {
        return Err(call.no_route());
    }
    call.api.links.remove_domain(&call.parameter(), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
