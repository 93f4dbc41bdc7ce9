//! `resolver api-key create|list|rotate|revoke`: manages API keys in the database.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use links::{
    Authority, DomainId, REMOVED,
    api_key::{ApiKey, ApiKeyRecord, KeyLimits, NewKey, OPERATOR, check_name},
    scope::Scopes,
};
use serde_json::json;
use store::{Keys, Settings};

use super::{
    database::ready,
    json_text,
    table::{Column, layout},
};
use crate::{Error, args::ApiKeyCommand};

/// The word for the default domain on the command line.
const DEFAULT_DOMAIN: &str = "DEFAULT";

pub(super) async fn run(command: ApiKeyCommand) -> Result<String, Error> {
    match command {
        ApiKeyCommand::Create {
            name,
            scopes,
            expires_in,
            domain,
            own_links_only,
            calls_per_minute,
            database,
        } => {
            let store = ready(&database).await?;
            let limits =
                KeyLimits { domain: find_domain(&*store, domain).await?, own_links_only, calls_per_minute };
            create(&*store, name, scopes, expires_in, limits).await
        }
        ApiKeyCommand::List { json, database } => {
            let store = ready(&database).await?;
            let (keys, domains) = (store.list_api_keys().await?, DomainNames::of(&*store).await?);
            Ok(if json { to_json(&keys, &domains) } else { to_table(&keys, &domains) })
        }
        ApiKeyCommand::Rotate { name, keep_old_for, database } => {
            let key = ApiKey::draw().map_err(Error::Random)?;
            match ready(&database).await?.rotate_api_key(&name, &key.hash(), keep_old_for).await? {
                true => Ok(format!("{}\n", key.reveal())),
                false => Err(wrong(&name, "expected the name of a key that is not revoked")),
            }
        }
        ApiKeyCommand::Revoke { name, database } => {
            if ready(&database).await?.revoke_api_key(&name).await? {
                Ok(format!("{name}: revoked\n"))
            } else {
                Err(wrong(&name, "expected the name of a key that is not revoked"))
            }
        }
    }
}

/// Returns the domain of this name, and adds it if it does not exist, as for a new link.
async fn find_domain(settings: &dyn Settings, name: Option<String>) -> Result<Option<DomainId>, Error> {
    let Some(name) = name else { return Ok(None) };
    if name == DEFAULT_DOMAIN {
        return Ok(Some(DomainId::DEFAULT));
    }
    let authority = Authority::parse(&name).map_err(|error| Error::Config {
        flag: "--domain",
        value: name,
        reason: format!("{error}, or DEFAULT for that of --public-url"),
    })?;
    // `--domains-max` limits API keys, not the operator's own command.
    Ok(settings.add_domain(&authority, u32::MAX, OPERATOR).await?)
}

async fn create(
    keys: &dyn Keys,
    name: String,
    scopes: Scopes,
    expires_in: Option<Duration>,
    limits: KeyLimits,
) -> Result<String, Error> {
    check_name(&name).map_err(|error| wrong(&name, &error.to_string()))?;
    let key = ApiKey::draw().map_err(Error::Random)?;
    let span = expires_in.and_then(|span| SignedDuration::try_from(span).ok());
    let expires_at = span.and_then(|span| Timestamp::now().checked_add(span).ok());
    let new = NewKey { name: name.clone(), hash: key.hash(), scopes, expires_at, limits };
    match keys.add_api_key(&new).await? {
        Some(_) => Ok(format!("{}\n", key.reveal())),
        None => Err(wrong(&name, "a key of this name exists: expected another name")),
    }
}

/// The names of domains, for the limits of keys.
struct DomainNames(HashMap<DomainId, String>);

impl DomainNames {
    async fn of(settings: &dyn Settings) -> Result<Self, Error> {
        let domains = settings.poll_settings(None).await?.settings.unwrap_or_default().domains;
        let named = domains.into_iter().filter_map(|domain| Some((domain.id, domain.authority?.to_string())));
        Ok(Self(named.collect()))
    }

    fn name(&self, id: DomainId) -> &str {
        let unnamed = if id.is_default() { DEFAULT_DOMAIN } else { REMOVED };
        self.0.get(&id).map_or(unnamed, String::as_str)
    }
}

fn to_json(keys: &[ApiKeyRecord], domains: &DomainNames) -> String {
    let time = |time: Option<Timestamp>| time.map(|at| at.to_string());
    let limits = |limits: &KeyLimits| {
        let mut shown = json!(limits);
        if let Some(domain) = limits.domain {
            shown["domain"] = json!(domains.name(domain));
        }
        shown
    };
    let keys: Vec<_> = keys
        .iter()
        .map(|key| {
            json!({
                "name": key.name,
                "scopes": key.scopes.to_string(),
                "createdAt": key.created_at.to_string(),
                "revokedAt": time(key.revoked_at),
                "expiresAt": time(key.expires_at),
                "lastUsedAt": time(key.last_used_at),
                "limits": limits(&key.limits),
            })
        })
        .collect();
    json_text::pretty(&json!(keys))
}

fn to_table(keys: &[ApiKeyRecord], domains: &DomainNames) -> String {
    let of = |head, read: &dyn Fn(&ApiKeyRecord) -> String| Column::new(head, true, keys.iter().map(read));
    let shown = |time: Option<Timestamp>, none: &str| time.map_or(none.to_owned(), |at| format!("{at:.0}"));
    let columns = vec![
        of("name", &|key| key.name.clone()),
        of("created", &|key| shown(Some(key.created_at), "")),
        of("last used", &|key| shown(key.last_used_at, "never")),
        of("revoked", &|key| shown(key.revoked_at, "no")),
        of("expires", &|key| shown(key.expires_at, "never")),
        of("scopes", &|key| key.scopes.to_string()),
        of("limits", &|key| limits(&key.limits, domains)),
    ];
    layout(columns, usize::MAX)
}

/// Formats the limits of a key in words.
fn limits(limits: &KeyLimits, domains: &DomainNames) -> String {
    let domain = limits.domain.map(|domain| format!("domain {}", domains.name(domain)));
    let own = limits.own_links_only.then(|| "own links only".to_owned());
    let calls = limits.calls_per_minute.map(|calls| match calls {
        0 => "any number of calls".to_owned(),
        calls => format!("{calls} calls a minute"),
    });
    [domain, own, calls].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn wrong(name: &str, reason: &str) -> Error {
    Error::Config { flag: "--name", value: name.to_owned(), reason: reason.to_owned() }
}
