//! `/rest/v3/domains`
//!
//! Shlink has the list and the redirects. Additions of ours are `PATCH /rest/v3/domains/{domain}`,
//! which changes a domain's name, its protocol and whether it is enabled, and `DELETE`, which
//! removes a domain that nothing depends on.
//!
//! 1. To add a domain takes the scope `domains`: otherwise any key that creates links could claim
//!    any host name.
//! 2. A key of links of its own changes no domain. A key of one domain changes that one, but does
//!    not rename it: under another name it would be led by the links of a host that its owner was
//!    never given.
//! 3. As with Shlink, a domain is listed if it has links or something is said of it; a key of its
//!    own links is shown only the domains that those are on, because names of domains tell of other
//!    tenants. `?all=true` shows an unlimited admin key the others too, which count among
//!    `--domains-max` and may be removed.

use hyper::StatusCode;
use links::{
    Authority, Domain, DomainEdit, DomainId, DomainSettings, LongUrl, LongUrlError, Protocol, REMOVED,
    Redirects, api_key::Grant, scope::Scope,
};
use serde_json::{Map, Value, json};
use store::{DomainEdited, DomainRemoved};

use super::{
    fields::{self, Wrong},
    json,
    problem::Problem,
    query::Query,
};
use crate::http::{Answer, App, empty};

/// The domain that a query names; the default one, if it names none. None when there is no such domain.
pub(super) async fn of_query(app: &App, query: &Query) -> Result<Option<DomainId>, Problem> {
    match query.text("domain") {
        None => Ok(Some(DomainId::DEFAULT)),
        Some(name) => Ok(app.directory.find(name).await?),
    }
}

/// The domain of a new link; none for the default one. A key of one domain makes links of that one, whatever was asked for.
pub(super) async fn for_new_link(
    app: &App,
    asked: Option<Authority>,
    by: &Grant,
) -> Result<Option<DomainId>, Problem> {
    let domain = match (by.limits.domain, asked) {
        (Some(own), _) => own,
        (None, None) => DomainId::DEFAULT,
        (None, Some(name)) => Box::pin(find_or_add(app, &name, by)).await?,
    };
    Ok(Some(domain).filter(|domain| !domain.is_default()))
}

/// The domain of this name, which is added if there is none and the key may add domains.
async fn find_or_add(app: &App, name: &Authority, by: &Grant) -> Result<DomainId, Problem> {
    if let Some(id) = app.directory.find_for_link(name.as_str()).await? {
        return Ok(id);
    }
    if !by.scopes.allow(Scope::Domains) {
        return Err(Problem::MayNotAddDomain { name: name.to_string() });
    }
    let most = app.directory.domains_max();
    let _turn = app.budgets.brief_turn(by.id).await?;
    app.directory.add(name, by.id).await?.ok_or(Problem::TooManyDomains { most })
}

/// Refuses URLs that are the short URL of this name on this domain. Longer circles, over links of
/// other domains, end in the browser.
pub(super) fn refuse_circle<'a>(
    app: &App,
    urls: impl IntoIterator<Item = &'a LongUrl>,
    domain: DomainId,
    name: &str,
) -> Result<(), Problem> {
    let is_itself = urls.into_iter().any(|url| app.directory.is_short_url(url, domain, name));
    if is_itself { Err(Problem::invalid("longUrl", LongUrlError::Itself.to_string())) } else { Ok(()) }
}

/// A domain's name, as links show it; none for the default one, [`REMOVED`] for one that is gone.
pub(in crate::http) fn shown_name(app: &App, id: DomainId) -> Option<String> {
    if id.is_default() {
        return None;
    }
    let entries = app.directory.entries();
    let name = |domain: &Domain| domain.authority.as_ref().map(ToString::to_string);
    entries.domain(id).map_or_else(|| Some(REMOVED.to_owned()), |domain| name(domain))
}

/// Lists domains, the default one first.
pub(super) async fn list(app: &App, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let all = query.flag("all").map_err(|expected| Problem::invalid("all", expected))?;
    let shows_all = all && by.scopes.is_admin() && !by.limits.hides_links();
    let of = by.limits.own_links_only.then_some(by.id);
    let _turn = app.budgets.turn(by.id).await?;
    let used = if shows_all { Vec::new() } else { app.store.domains_with_links(of).await? };
    let entries = app.directory.entries();
    let is_shown = |domain: &Domain| match (by.limits.domain, of) {
        _ if shows_all => true,
        (Some(own), _) if own != domain.id => false,
        (_, Some(_)) => used.contains(&domain.id),
        (Some(_), None) => true,
        (None, None) => used.contains(&domain.id) || domain.settings != DomainSettings::default(),
    };
    let shows_default = by.limits.domain.is_none_or(|own| own.is_default());
    let default = || shown(app.directory.default_name(), true, &entries.default_domain().settings);
    let mut data: Vec<Value> = shows_default.then(default).into_iter().collect();
    // A row with the default domain's name is shadowed by it.
    let is_default = |domain: &Domain| app.directory.settled(domain.id).is_default();
    let others = entries.others().into_iter().filter(|domain| is_shown(domain) && !is_default(domain));
    data.extend(
        others.filter_map(|domain| Some(shown(domain.authority.as_ref()?.as_str(), false, &domain.settings))),
    );
    let defaults = redirects(&app.stray_targets.redirects);
    Ok(json(&json!({ "domains": { "data": data, "defaultRedirects": defaults } })))
}

/// Whether a key may know that this domain is there.
pub(super) async fn is_shown_to(app: &App, id: DomainId, by: &Grant) -> Result<bool, Problem> {
    if by.limits.domain.is_some_and(|own| own != id) {
        return Ok(false);
    }
    if id.is_default() || !by.limits.own_links_only {
        return Ok(true);
    }
    let _turn = app.budgets.turn(by.id).await?;
    Ok(app.store.domains_with_links(Some(by.id)).await?.contains(&id))
}

fn shown(name: &str, is_default: bool, settings: &DomainSettings) -> Value {
    json!({
        "domain": name,
        "isDefault": is_default,
        "redirects": redirects(&settings.redirects),
        "enabled": !settings.disabled,
        "protocol": settings.protocol.map(Protocol::as_str),
    })
}

fn redirects(of: &Redirects) -> Value {
    json!({
        "baseUrlRedirect": of.base_url,
        "regular404Redirect": of.regular_404,
        "invalidShortUrlRedirect": of.invalid_short_url,
    })
}

/// Changes where visitors go that no link leads on. A domain that is not known is added, as with Shlink.
pub(super) async fn edit_redirects(
    app: &App,
    given: &Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let (mut wrong, mut edit) = (Wrong::default(), DomainEdit::default());
    let name = match given.get("domain") {
        Some(Value::String(name)) if name == "DEFAULT" || app.directory.is_default_name(name) => Ok(None),
        Some(Value::String(name)) => Authority::parse(name).map(Some).map_err(|error| error.to_string()),
        _ => Err("expected a string with a domain".to_owned()),
    };
    let name = wrong.note("domain", name);
    fields::each(given, &mut wrong, |field, value| match field {
        "domain" => Ok(()),
        "baseUrlRedirect" => fields::stray_target(value).map(|target| edit.base_url = Some(target)),
        "regular404Redirect" => fields::stray_target(value).map(|target| edit.regular_404 = Some(target)),
        "invalidShortUrlRedirect" => {
            fields::stray_target(value).map(|target| edit.invalid_short_url = Some(target))
        }
        _ => fields::without_effect(field),
    });
    wrong.check()?;
    may_change(by)?;
    let id = match name.ok_or(Problem::Internal)? {
        None => DomainId::DEFAULT,
        // A key of one domain must not make others.
        Some(name) if by.limits.domain.is_some() => {
            app.directory.find(name.as_str()).await?.ok_or_else(|| no_domain(name.as_str()))?
        }
        Some(name) => find_or_add(app, &name, by).await?,
    };
    let domain = apply(app, id, &edit, by).await?;
    Ok(json(&redirects(&domain.settings.redirects)))
}

/// Changes the rest of a domain.
pub(super) async fn edit(
    app: &App,
    name: &str,
    given: &Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let (mut wrong, mut edit) = (Wrong::default(), DomainEdit::default());
    fields::each(given, &mut wrong, |field, value| match (field, value) {
        ("domain", Value::String(name)) => {
            let name = Authority::parse(name).map_err(|error| error.to_string())?;
            edit.authority = Some(name);
            Ok(())
        }
        ("domain", _) => Err("expected a string with a domain".to_owned()),
        ("enabled", value) => fields::flag(value).map(|flag| edit.disabled = flag.map(|enabled| !enabled)),
        ("protocol", Value::Null) => {
            edit.protocol = Some(None);
            Ok(())
        }
        ("protocol", Value::String(name)) => {
            let protocol = Protocol::parse(name).ok_or("expected http, https or null")?;
            edit.protocol = Some(Some(protocol));
            Ok(())
        }
        ("protocol", _) => Err("expected http, https or null".to_owned()),
        _ => fields::without_effect(field),
    });
    wrong.check()?;
    may_change(by)?;
    let decoded = decoded(name);
    let id = app.directory.find(&decoded).await?.ok_or_else(|| no_domain(&decoded))?;
    // An operator may have switched it off: whose domain it is must not switch it on again.
    let is_off = app.directory.entries().domain(id).is_some_and(|domain| domain.settings.disabled);
    let switches_on = is_off && edit.disabled == Some(false);
    if by.limits.hides_links() && (edit.authority.is_some() || switches_on) {
        return Err(Problem::LimitedKey);
    }
    if id.is_default() && (edit.authority.is_some() || edit.protocol.is_some()) {
        let expected = "expected --public-url to be changed: it names the default domain";
        let field = if edit.authority.is_some() { "domain" } else { "protocol" };
        return Err(Problem::invalid(field, expected));
    }
    let domain = apply(app, id, &edit, by).await?;
    let name = domain.authority.as_ref().map_or(app.directory.default_name(), Authority::as_str);
    Ok(json(&shown(name, id.is_default(), &domain.settings)))
}

/// Removes a domain without links. The key is unlimited.
pub(super) async fn remove(app: &App, name: &str, by: &Grant) -> Result<Answer, Problem> {
    let name = decoded(name);
    let id = app.directory.find(&name).await?.ok_or_else(|| no_domain(&name))?;
    if id.is_default() {
        return Err(Problem::DomainInUse { name, by: "it is the one that --public-url names" });
    }
    let _turn = app.budgets.brief_turn(by.id).await?;
    match app.directory.remove(id, by.id).await? {
        DomainRemoved::Done => Ok(empty(StatusCode::NO_CONTENT)),
        DomainRemoved::Absent => Err(no_domain(&name)),
        DomainRemoved::HasLinks => Err(Problem::DomainInUse {
            name,
            by: "expected its links to be deleted, and none of them to be blocked, before",
        }),
        DomainRemoved::HasKeys => Err(Problem::DomainInUse {
            name,
            by: "expected the keys that are limited to it to be revoked before",
        }),
    }
}

fn decoded(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// A domain is the business of others than those whose links a key sees.
fn may_change(by: &Grant) -> Result<(), Problem> {
    if by.limits.own_links_only { Err(Problem::LimitedKey) } else { Ok(()) }
}

async fn apply(app: &App, id: DomainId, edit: &DomainEdit, by: &Grant) -> Result<Domain, Problem> {
    let name = || shown_name(app, id).unwrap_or_else(|| app.directory.default_name().to_owned());
    if by.limits.domain.is_some_and(|own| own != id) {
        return Err(no_domain(&name()));
    }
    let taken = |name: &Authority| Problem::DomainTaken { name: name.to_string() };
    if let Some(new) = edit.authority.as_ref().filter(|new| app.directory.is_default_name(new.as_str())) {
        return Err(taken(new));
    }
    let _turn = app.budgets.brief_turn(by.id).await?;
    match app.directory.edit(id, edit, by.id).await? {
        DomainEdited::Done(domain) => Ok(*domain),
        DomainEdited::Absent => Err(no_domain(&name())),
        DomainEdited::Taken => Err(edit.authority.as_ref().map_or(Problem::Internal, taken)),
    }
}

/// No domain has this name.
pub(super) fn no_domain(name: &str) -> Problem {
    Problem::NoDomain { name: name.to_owned() }
}
