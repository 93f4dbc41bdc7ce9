//! `resolver api-key create|list|revoke`

use std::fmt::Write as _;

use serde_json::json;

use super::{open, wait_for};
use crate::{
    Error,
    api_key::{ApiKey, ApiKeyRecord, check_name},
    config::DatabaseArgs,
    scope::Scopes,
};

pub(super) async fn create(name: &str, scopes: &Scopes, args: &DatabaseArgs) -> Result<String, Error> {
    check_name(name).map_err(|error| wrong(name, &error.to_string()))?;
    let key = ApiKey::draw().map_err(Error::Random)?;
    let store = open(&args.database, None).await?;
    wait_for(args, async || store.check().await).await?;
    match store.add_api_key(name, &key.hash(), scopes).await? {
        Some(_) => Ok(format!("{}\n", key.reveal())),
        None => Err(wrong(name, "a key of this name exists: expected another name")),
    }
}

pub(super) async fn list(as_json: bool, args: &DatabaseArgs) -> Result<String, Error> {
    let store = open(&args.database, None).await?;
    wait_for(args, async || store.check().await).await?;
    let keys = store.list_api_keys().await?;
    Ok(if as_json { to_json(&keys) } else { to_table(&keys) })
}

pub(super) async fn revoke(name: &str, args: &DatabaseArgs) -> Result<String, Error> {
    let store = open(&args.database, None).await?;
    wait_for(args, async || store.check().await).await?;
    if store.revoke_api_key(name).await? {
        Ok(format!("{name}: revoked\n"))
    } else {
        Err(wrong(name, "expected the name of a key that is not revoked"))
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
            })
        })
        .collect();
    format!("{:#}\n", json!(keys))
}

fn to_table(keys: &[ApiKeyRecord]) -> String {
    let width = keys.iter().map(|key| key.name.len()).max().unwrap_or(0).max("name".len());
    let mut text = format!("{:<width$}  {:<20}  {:<20}  scopes\n", "name", "created", "revoked");
    for key in keys {
        let created = format!("{:.0}", key.created_at);
        let revoked = key.revoked_at.map_or("no".to_owned(), |at| format!("{at:.0}"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<width$}  {created:<20}  {revoked:<20}  {}", key.name, key.scopes);
    }
    text
}

fn wrong(name: &str, reason: &str) -> Error {
    Error::Config { flag: "--name", value: name.to_owned(), reason: reason.to_owned() }
}
