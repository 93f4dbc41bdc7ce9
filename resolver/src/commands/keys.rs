//! `resolver api-key create|list|rotate|revoke`

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{open, wait_for};
use crate::{
    Error,
    api_key::{ApiKey, ApiKeyRecord, KeyLimits, NewKey, check_name},
    config::{ApiKeyCommand, DatabaseArgs},
    links::{Authority, DomainId},
    scope::Scopes,
    store::LinkStore,
};

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
            let keys = ready(&database).await?.list_api_keys().await?;
            Ok(if json { to_json(&keys) } else { to_table(&keys) })
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

/// The database, once it answers and its schema is recent enough.
pub(super) async fn ready(args: &DatabaseArgs) -> Result<Arc<dyn LinkStore>, Error> {
    let store = open(&args.database, None).await?;
    wait_for(args, async || store.check().await).await?;
    Ok(store)
}

/// The domain of this name; it is added if there is none, as for a new link.
async fn find_domain(store: &dyn LinkStore, name: Option<String>) -> Result<Option<DomainId>, Error> {
    let Some(name) = name else { return Ok(None) };
    if name == "DEFAULT" {
        return Ok(Some(DomainId::DEFAULT));
    }
    let authority = Authority::parse(&name).map_err(|error| Error::Config {
        flag: "--domain",
        value: name,
        reason: format!("{error}, or DEFAULT for that of --public-url"),
    })?;
    Ok(Some(store.add_domain(&authority).await?))
}

async fn create(
    store: &dyn LinkStore,
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
    match store.add_api_key(&new).await? {
        Some(_) => Ok(format!("{}\n", key.reveal())),
        None => Err(wrong(&name, "a key of this name exists: expected another name")),
    }
}

fn to_json(keys: &[ApiKeyRecord]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|key| {
            json!({
                "name": key.name,
                "scopes": key.scopes.to_string(),
                "createdAt": key.created_at.to_string(),
                "revokedAt": key.revoked_at.map(|at| at.to_string()),
                "expiresAt": key.expires_at.map(|at| at.to_string()),
                "limits": key.limits,
            })
        })
        .collect();
    format!("{:#}\n", json!(keys))
}

fn to_table(keys: &[ApiKeyRecord]) -> String {
    let width = keys.iter().map(|key| key.name.len()).max().unwrap_or(0).max("name".len());
    let head = ("name", "created", "revoked", "expires");
    let mut text = format!("{:<width$}  {:<20}  {:<20}  {:<20}  scopes\n", head.0, head.1, head.2, head.3);
    let shown = |time: Option<Timestamp>, none: &str| time.map_or(none.to_owned(), |at| format!("{at:.0}"));
    for key in keys {
        let (created, revoked) = (format!("{:.0}", key.created_at), shown(key.revoked_at, "no"));
        let expires = shown(key.expires_at, "never");
        let limits = match (&key.limits.domain, key.limits.own_links_only) {
            (None, false) => "",
            (Some(_), false) => ", one domain only",
            (None, true) => ", own links only",
            (Some(_), true) => ", own links of one domain only",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<width$}  {created:<20}  {revoked:<20}  {expires:<20}  {}{limits}",
            key.name, key.scopes
        );
    }
    text
}

fn wrong(name: &str, reason: &str) -> Error {
    Error::Config { flag: "--name", value: name.to_owned(), reason: reason.to_owned() }
}
