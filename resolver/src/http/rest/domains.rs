//! `/rest/v3/domains`
//!
//! Shlink has the list and the redirects. An addition of ours is `PATCH /rest/v3/domains/{domain}`: another name, which its links follow;
//! whether it is enabled; and its protocol.

use serde_json::{Map, Value, json};

use super::{
    fields::{self, Wrong},
    json,
    problem::Problem,
    query::Query,
};
use crate::{
    api_key::Grant,
    http::{Answer, App},
    links::{Authority, Domain, DomainEdit, DomainId, DomainSettings, Protocol, Redirects},
    store::DomainEdited,
};

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
        (None, Some(name)) => app.directory.find_or_add(&name).await?,
    };
    Ok(Some(domain).filter(|domain| !domain.is_default()))
}

/// A domain's name, as links show it; none for the default one.
pub(in crate::http) fn shown_name(app: &App, id: DomainId) -> Option<String> {
    if id.is_default() {
        return None;
    }
    let entries = app.directory.entries();
    entries.domain(id)?.authority.as_ref().map(ToString::to_string)
}

/// Lists domains, the default one first.
pub(super) fn list(app: &App, by: &Grant) -> Answer {
    let entries = app.directory.entries();
    let is_shown = |id: DomainId| by.limits.domain.is_none_or(|own| own == id);
    let default = || shown(app.directory.default_name(), true, &entries.default_domain().settings);
    let mut data: Vec<Value> = is_shown(DomainId::DEFAULT).then(default).into_iter().collect();
    // A row with the default domain's name is shadowed by it.
    let is_default = |domain: &Domain| app.directory.settled(domain.id).is_default();
    let others = entries.others().into_iter().filter(|domain| is_shown(domain.id) && !is_default(domain));
    data.extend(
        others.filter_map(|domain| Some(shown(domain.authority.as_ref()?.as_str(), false, &domain.settings))),
    );
    let defaults = redirects(&app.stray_targets.redirects);
    json(&json!({ "domains": { "data": data, "defaultRedirects": defaults } }))
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
        Some(Value::String(name)) if name == "DEFAULT" || name == app.directory.default_name() => Ok(None),
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
        _ => fields::without_effect(field, value),
    });
    wrong.check()?;
    let id = match name.ok_or(Problem::Internal)? {
        None => DomainId::DEFAULT,
        // A key of one domain must not make others.
        Some(name) if by.limits.domain.is_some() => {
            app.directory.find(name.as_str()).await?.ok_or_else(|| no_domain(name.as_str()))?
        }
        Some(name) => app.directory.find_or_add(&name).await?,
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
        _ => fields::without_effect(field, value),
    });
    wrong.check()?;
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
    let id = app.directory.find(&decoded).await?.ok_or_else(|| no_domain(&decoded))?;
    if id.is_default() && (edit.authority.is_some() || edit.protocol.is_some()) {
        let expected = "expected --public-url to be changed: it names the default domain";
        let field = if edit.authority.is_some() { "domain" } else { "protocol" };
        return Err(Problem::invalid(field, expected));
    }
    let domain = apply(app, id, &edit, by).await?;
    let name = domain.authority.as_ref().map_or(app.directory.default_name(), Authority::as_str);
    Ok(json(&shown(name, id.is_default(), &domain.settings)))
}

async fn apply(app: &App, id: DomainId, edit: &DomainEdit, by: &Grant) -> Result<Domain, Problem> {
    let name = || shown_name(app, id).unwrap_or_else(|| app.directory.default_name().to_owned());
    if by.limits.domain.is_some_and(|own| own != id) {
        return Err(no_domain(&name()));
    }
    let taken = |name: &Authority| Problem::DomainTaken { name: name.to_string() };
    if let Some(new) = edit.authority.as_ref().filter(|new| new.as_str() == app.directory.default_name()) {
        return Err(taken(new));
    }
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
