//! Checks before the start of service that need the database's agreement: schema, code key,
//! keyspaces, and a first API key.

use std::io::ErrorKind;

use cli::{
    Error,
    args::{Database, DatabaseArgs},
    code_key_file, wait_for, wrong_value,
};
use codes::CodeKey;
use links::api_key::ApiKey;
use lookup::keyspaces::{Adopted, adopt_keyspaces};
use numbers::Mark;
use store::{Comparison, Keys, SettingsPoll, Store, StoreError};
use tokio::time::Instant;

use crate::config::Settings;

/// The values agreed with the database before the start of service.
pub(crate) struct Bootstrapped {
    pub(crate) code_key: CodeKey,
    pub(crate) adopted: Adopted,
    pub(crate) new_key: Option<String>,
    /// The settings in the database, and when the poll of them was sent.
    pub(crate) polled: (Instant, SettingsPoll),
}

pub(crate) async fn bootstrap(settings: &Settings, store: &dyn Store) -> Result<Bootstrapped, Error> {
    let database = &settings.flags.database;
    // Prepared statements, notifications and locks belong to a session.
    wait_for(database, async || store.prove_notifications().await).await?;
    if !settings.flags.role.serves_api() {
        return read_only(settings, store).await;
    }
    if matches!(database.database, Database::Sqlite(_)) {
        // Only one process uses the file, so a migration disturbs no older version.
        wait_for(database, async || store.migrate().await).await?;
    }
    wait_for(database, async || store.check().await).await?;
    let code_key = adopt_code_key(settings, store).await?;
    let adopted =
        wait_for(database, async || adopt_keyspaces(store, &settings.keyspaces, settings.lookup.rules).await);
    let adopted = adopted.await.map_err(|error| match error {
        Error::Store(StoreError::Keyspace(reason)) => {
            wrong_value("--keyspaces", &settings.flags.keyspaces, reason)
        }
        error => error,
    })?;
    // Before keys or numbers are issued, because the database may be an older copy: one that says
    // so itself, or one that the witness file shows.
    if let Some(made_at) = wait_for(database, async || store.begin_after_restore().await).await? {
        tracing::warn!(
            %made_at,
            "restored from a backup: links that were created after it are lost, and none of their codes is minted again"
        );
    }
    wait_for(database, async || store.advance(Mark(0), Comparison::default()).await).await?;
    let polled = poll(database, store).await?;
    let new_key = first_api_key(settings, store).await?;
    Ok(Bootstrapped { code_key, adopted, new_key, polled })
}

async fn poll(database: &DatabaseArgs, store: &dyn Store) -> Result<(Instant, SettingsPoll), Error> {
    let poll = async || {
        let asked = Instant::now();
        Ok((asked, store.poll_settings(None).await?))
    };
    wait_for(database, poll).await
}

/// Agrees with a database that another process has set up, and changes nothing in it.
async fn read_only(settings: &Settings, store: &dyn Store) -> Result<Bootstrapped, Error> {
    let database = &settings.flags.database;
    wait_for(database, async || store.check().await).await?;
    let code_key = code_key_file::read(&settings.code_key_file)
        .map_err(|error| wrong_key(settings, format!("{error}: expected the key of this database")))?;
    let adopted = wait_for(database, async || store.fingerprint().await?.ok_or(StoreError::NotSetUp)).await?;
    agree(settings, &code_key, &adopted)?;
    let (asked, shared) = poll(database, store).await?;
    let keyspaces = shared.settings.as_ref().map(|settings| settings.keyspaces.clone()).unwrap_or_default();
    let adopted = Adopted { keyspaces, shown_at: asked };
    Ok(Bootstrapped { code_key, adopted, new_key: None, polled: (asked, shared) })
}

/// Reads the code key, or generates one for a database that has none yet. The file is written
/// before the database adopts its fingerprint, because the codes of a database whose key is lost
/// could not be read.
async fn adopt_code_key(settings: &Settings, store: &dyn store::Settings) -> Result<CodeKey, Error> {
    let flags = &settings.flags;
    let path = &settings.code_key_file;
    let wrong = |reason| wrong_key(settings, reason);
    let adopted = wait_for(&flags.database, async || store.fingerprint().await).await?;
    let key = match code_key_file::read(path) {
        Ok(key) => key,
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(wrong(error.to_string())),
        Err(_) if flags.code_key_file.is_some() => {
            return Err(wrong("no such file: it should have 64 hexadecimal characters".to_owned()));
        }
        Err(_) if adopted.is_some() => {
            return Err(wrong(
                "no such file, but this database has had a code key before: bring it back".to_owned(),
            ));
        }
        Err(_) => code_key_file::create(path).map_err(|error| wrong(error.to_string()))?,
    };
    let mine = key.fingerprint();
    let adopted = wait_for(&flags.database, async || store.adopt_fingerprint(&mine).await).await?;
    agree(settings, &key, &adopted)?;
    Ok(key)
}

/// Compares the code key with the fingerprint of the database's.
fn agree(settings: &Settings, key: &CodeKey, adopted: &str) -> Result<(), Error> {
    let mine = key.fingerprint();
    if adopted == mine {
        return Ok(());
    }
    Err(wrong_key(
        settings,
        format!(
            "this database belongs to another code key: its mark is {adopted}, this file's is {mine}. \
             With another key every stored link would answer under another code"
        ),
    ))
}

fn wrong_key(settings: &Settings, reason: String) -> Error {
    wrong_value("--code-key-file", settings.code_key_file.display(), reason)
}

/// Creates the first API key if there has never been one. Returns the key if it was generated now.
async fn first_api_key(settings: &Settings, keys: &dyn Keys) -> Result<Option<String>, Error> {
    let (key, drawn) = match &settings.flags.initial_api_key {
        Some(text) => {
            let chosen = ApiKey::chosen(text);
            (chosen.map_err(|error| wrong_value("--initial-api-key", "(hidden)", error))?, false)
        }
        None => (ApiKey::draw().map_err(Error::Random)?, true),
    };
    let hash = key.hash();
    let added =
        wait_for(&settings.flags.database, async || keys.add_first_api_key("initial", &hash).await).await?;
    Ok((added && drawn).then(|| key.reveal().to_owned()))
}
