//! `resolver api-key create|list|rotate|revoke`: manages API keys in the database.

use std::time::Duration;

use app::api_keys::{ApiKeys, CreateKey, KeyDomain, KeyError, ListedKey};
use clap::{Args, Subcommand};
use daemon::{parse_duration, parse_duration_or_zero};
use jiff::Timestamp;
use links::{Authority, REMOVED, scope::Scopes};
use serde_json::json;

use crate::{
    Error,
    args::DatabaseArgs,
    database::ready,
    json_text,
    table::{Field, grid},
    wrong_value,
};

const DEFAULT_DOMAIN: &str = "DEFAULT";

#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Create an API key and print it. Only its hash is stored, so it cannot be shown again.
    Create(ApiKeyCreateArgs),
    /// List all API keys.
    List {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Replace the secret of an API key and print the new one. Its links and limits stay.
    Rotate {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// Keep the old secret valid for this long, so that clients can be changed one after the
        /// other.
        #[arg(long, default_value = "0s", value_parser = parse_duration_or_zero, value_name = "TIME")]
        keep_old_for: Duration,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke an API key. Resolvers refuse it within a second.
    Revoke {
        /// Name of the key.
        #[arg(long)]
        name: String,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Clone, Debug, Args)]
pub struct ApiKeyCreateArgs {
    /// Name of the key.
    #[arg(long)]
    pub name: String,
    /// Scopes of the key, separated by commas: create, read, edit, delete, visits, reserve,
    /// domains (to add domains), or admin for everything.
    #[arg(long, default_value = "admin")]
    pub scopes: Scopes,
    /// Let the key expire after this time, such as 90d. Never if absent.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub expires_in: Option<Duration>,
    /// Limit the key to the links of this domain.
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// Limit the key to the links that it has created.
    #[arg(long)]
    pub own_links_only: bool,
    /// Hide visits that no link redirected from the key.
    #[arg(long)]
    pub no_orphan_visits: bool,
    /// Maximum number of calls per minute with this key, instead of calls-per-key of the
    /// server's --limit; 0 for no limit.
    #[arg(long, value_name = "COUNT")]
    pub calls_per_minute: Option<u32>,
    #[command(flatten)]
    pub database: DatabaseArgs,
}

pub(super) async fn run(command: ApiKeyCommand) -> Result<String, Error> {
    match command {
        ApiKeyCommand::Create(args) => {
            let api_keys = open(&args.database).await?;
            let wish = CreateKey {
                name: args.name.clone(),
                scopes: args.scopes,
                expires_in: args.expires_in,
                domain: args.domain.map(parse_domain).transpose()?,
                own_links_only: args.own_links_only,
                no_orphan_visits: args.no_orphan_visits,
                calls_per_minute: args.calls_per_minute,
            };
            let key = api_keys.create(wish).await.map_err(|error| key_error(&args.name, error))?;
            Ok(format!("{}\n", key.reveal()))
        }
        ApiKeyCommand::List { json, database } => {
            let keys = open(&database).await?.list().await?;
            Ok(if json { to_json(&keys) } else { grid(&keys, &FIELDS, usize::MAX) })
        }
        ApiKeyCommand::Rotate { name, keep_old_for, database } => {
            let rotated = open(&database).await?.rotate(&name, keep_old_for).await;
            let key = rotated.map_err(|error| key_error(&name, error))?;
            Ok(format!("{}\n", key.reveal()))
        }
        ApiKeyCommand::Revoke { name, database } => {
            let revoked = open(&database).await?.revoke(&name).await;
            revoked.map_err(|error| key_error(&name, error))?;
            Ok(format!("{name}: revoked\n"))
        }
    }
}

async fn open(database: &DatabaseArgs) -> Result<ApiKeys, Error> {
    ready(database).await.map(ApiKeys::new)
}

fn parse_domain(name: String) -> Result<KeyDomain, Error> {
    if name == DEFAULT_DOMAIN {
        return Ok(KeyDomain::Default);
    }
    Authority::parse(&name).map(KeyDomain::Named).map_err(|error| {
        wrong_value("--domain", &name, format!("{error}, or DEFAULT for that of --public-url"))
    })
}

fn key_error(name: &str, error: KeyError) -> Error {
    match error {
        KeyError::Name(_)
        | KeyError::NameTaken
        | KeyError::NoKey
        | KeyError::BeyondOwn
        | KeyError::LastOperator => wrong_value("--name", name, error),
        KeyError::Random(error) => Error::Random(error),
        KeyError::Store(error) => Error::Store(error),
    }
}

fn domain_name(key: &ListedKey) -> Option<&str> {
    let id = key.record.limits.domain?;
    let unnamed = if id.is_default() { DEFAULT_DOMAIN } else { REMOVED };
    Some(key.domain_name.as_deref().unwrap_or(unnamed))
}

fn to_json(keys: &[ListedKey]) -> String {
    let one = |key: &ListedKey| {
        let record = &key.record;
        let mut limits = json!(record.limits);
        if let Some(domain) = domain_name(key) {
            limits["domain"] = json!(domain);
        }
        json!({
            "name": record.name,
            "scopes": record.scopes.to_string(),
            "createdAt": record.created_at,
            "revokedAt": record.revoked_at,
            "expiresAt": record.expires_at,
            "lastUsedAt": record.last_used_at,
            "limits": limits,
        })
    };
    json_text::pretty(&keys.iter().map(one).collect())
}

const FIELDS: [Field<ListedKey>; 7] = [
    ("name", true, |key| key.record.name.clone()),
    ("created", true, |key| shown(Some(key.record.created_at), "")),
    ("last used", true, |key| shown(key.record.last_used_at, "never")),
    ("revoked", true, |key| shown(key.record.revoked_at, "no")),
    ("expires", true, |key| shown(key.record.expires_at, "never")),
    ("scopes", true, |key| key.record.scopes.to_string()),
    ("limits", true, limits),
];

fn shown(time: Option<Timestamp>, none: &str) -> String {
    time.map_or(none.to_owned(), |at| format!("{at:.0}"))
}

fn limits(key: &ListedKey) -> String {
    let domain = domain_name(key).map(|name| format!("domain {name}"));
    let own = key.record.limits.own_links_only.then(|| "own links only".to_owned());
    let orphans = key.record.limits.no_orphan_visits.then(|| "no orphan visits".to_owned());
    let calls = key.record.limits.calls_per_minute.map(|calls| match calls {
        0 => "any number of calls".to_owned(),
        calls => format!("{calls} calls a minute"),
    });
    [domain, own, orphans, calls].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
