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

use app::{Field, FieldErrors, NamedDomain};
use hyper::StatusCode;
use links::{Authority, DomainEdit, Protocol, Redirects, api_key::Grant};
use serde_json::{Map, Value, json};

use super::{fields, json, problem::Problem, query::Query};
use crate::http::{Answer, App, empty};

/// Lists domains, the default one first.
pub(super) async fn list(app: &App, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let all = query.flag("all").map_err(|expected| Problem::invalid("all", expected))?;
    let data: Vec<Value> = app.links.domains(all, by).await?.iter().map(shown).collect();
    let defaults = redirects(&app.fallback_redirects);
    Ok(json(&json!({ "domains": { "data": data, "defaultRedirects": defaults } })))
}

fn shown(NamedDomain { name, is_default, settings }: &NamedDomain) -> Value {
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
    let (mut wrong, mut edit) = (FieldErrors::default(), DomainEdit::default());
    let name = match given.get(Field::Domain.name()) {
        Some(Value::String(name)) => app.links.check_domain(name),
        _ => Err("expected a string with a domain".to_owned()),
    };
    let name = wrong.note(Field::Domain.name(), name);
    each(given, &mut wrong, |field, value| match field {
        "domain" => Ok(()),
        "baseUrlRedirect" => fields::stray_target(value).map(|target| edit.base_url = Some(target)),
        "regular404Redirect" => fields::stray_target(value).map(|target| edit.regular_404 = Some(target)),
        "invalidShortUrlRedirect" => {
            fields::stray_target(value).map(|target| edit.invalid_short_url = Some(target))
        }
        _ => fields::without_effect(field),
    });
    wrong.finish()?;
    let name = name.ok_or(Problem::INTERNAL)?;
    let domain = app.links.edit_domain_redirects(name, &edit, by).await?;
    Ok(json(&redirects(&domain.settings.redirects)))
}

/// Changes the rest of a domain.
pub(super) async fn edit(
    app: &App,
    name: &str,
    given: &Map<String, Value>,
    by: &Grant,
) -> Result<Answer, Problem> {
    let (mut wrong, mut edit) = (FieldErrors::default(), DomainEdit::default());
    each(given, &mut wrong, |field, value| match (field, value) {
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
    wrong.finish()?;
    Ok(json(&shown(&app.links.edit_domain(&decoded(name), &edit, by).await?)))
}

/// Removes a domain without links.
pub(super) async fn remove(app: &App, name: &str, by: &Grant) -> Result<Answer, Problem> {
    app.links.remove_domain(&decoded(name), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn decoded(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// Reads the fields of an object, one after another.
fn each<'a>(
    given: &'a Map<String, Value>,
    wrong: &mut FieldErrors,
    mut read: impl FnMut(&'a str, &'a Value) -> Result<(), String>,
) {
    for (name, value) in given {
        wrong.note(name, read(name, value));
    }
}
