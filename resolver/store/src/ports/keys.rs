//! API keys, the browser sessions that they open, and the audit log of what was done with them.

use std::time::Duration;

use async_trait::async_trait;
use links::{
    SessionHash,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey, SecretNumber},
    audit::{Entry, EntryFilter, NewEntry},
};

use crate::{
    Database,
    Lane::{Authenticate, List, LongWrite, Read, Write},
    Result, Sweep,
    operation::run,
    sql::{audit, keys, sessions},
};

/// API keys, browser sessions and the audit log.
#[async_trait]
pub trait Keys: Database {
    /// Adds an API key. Returns `None` if the name is taken.
    async fn add_api_key(&self, key: &NewKey, by: ApiKeyId) -> Result<Option<ApiKeyId>> {
        run(self, Write, (key.clone(), by), |sql, (key, by)| Box::pin(keys::add_api_key(sql, key, *by))).await
    }

    /// Adds an API key if there has never been one, and returns whether it was added.
    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool> {
        let args = (name.to_owned(), hash.clone());
        run(self, Write, args, |sql, (name, hash)| Box::pin(keys::add_first_api_key(sql, name, hash))).await
    }

    /// Returns the grant of the API key with this hash. A revoked or expired key has none.
    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>> {
        run(self, Authenticate, hash.clone(), |sql, hash| Box::pin(keys::find_api_key(sql, hash))).await
    }

    /// Returns the grant of the API key with this id for the holder of this secret. A revoked or
    /// expired key has none, nor has a secret that was replaced and is not valid any more.
    async fn find_grant(&self, id: ApiKeyId, secret: SecretNumber) -> Result<Option<Grant>> {
        let args = (id, secret);
        run(self, Authenticate, args, |sql, (id, secret)| Box::pin(keys::find_grant(sql, *id, *secret))).await
    }

    /// Returns the grant of the API key with this id for what it has scheduled, whichever secret it
    /// has by now. A revoked or expired key has none.
    async fn find_grant_of_key(&self, id: ApiKeyId) -> Result<Option<Grant>> {
        run(self, Authenticate, id, |sql, id| Box::pin(keys::find_grant_of_key(sql, *id))).await
    }

    /// Opens a browser session with a secret of an API key. It expires after `lasts`, by the
    /// database's clock. Idempotent: a session that exists stays as it is. Of more than 50 sessions
    /// of a key, those that expire first end.
    async fn open_session(
        &self,
        hash: &SessionHash,
        by: (ApiKeyId, SecretNumber),
        lasts: Duration,
    ) -> Result<()> {
        run(self, Write, (hash.clone(), by, lasts), |sql, (hash, by, lasts)| {
            Box::pin(sessions::open_session(sql, hash, *by, *lasts))
        })
        .await
    }

    /// Returns the grant of the API key that opened a session, as [`find_grant`](Self::find_grant)
    /// does. A session that has ended or expired has none.
    async fn find_session(&self, hash: &SessionHash) -> Result<Option<Grant>> {
        run(self, Authenticate, hash.clone(), |sql, hash| Box::pin(sessions::find_session(sql, hash))).await
    }

    /// Ends a browser session. Idempotent.
    async fn end_session(&self, hash: &SessionHash) -> Result<()> {
        run(self, Write, hash.clone(), |sql, hash| Box::pin(sessions::end_session(sql, hash))).await
    }

    /// Returns the names of those of these API keys that exist, in any order.
    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>> {
        run(self, List, ids.to_vec(), |sql, ids| Box::pin(keys::key_names(sql, ids))).await
    }

    /// Returns all API keys in the order of their creation.
    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>> {
        run(self, Read, (), |sql, ()| Box::pin(keys::list_api_keys(sql))).await
    }

    /// Records that API keys are in use. The ids must ascend. Idempotent.
    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<()> {
        run(self, Write, ids.to_vec(), |sql, ids| Box::pin(keys::note_keys_used(sql, ids))).await
    }

    /// Replaces the secret of an API key. The old secret stays valid for `keep`, and so do its
    /// sessions. Returns whether the key exists and is not revoked.
    async fn rotate_api_key(&self, name: &str, hash: &KeyHash, keep: Duration, by: ApiKeyId) -> Result<bool> {
        run(self, Write, (name.to_owned(), hash.clone(), keep, by), |sql, (name, hash, keep, by)| {
            Box::pin(keys::rotate_api_key(sql, name, hash, *keep, *by))
        })
        .await
    }

    /// Revokes an API key, which ends its sessions. Returns whether a key of that name existed that
    /// was not revoked yet.
    async fn revoke_api_key(&self, name: &str, by: ApiKeyId) -> Result<bool> {
        let args = (name.to_owned(), by);
        run(self, Write, args, |sql, (name, by)| Box::pin(keys::revoke_api_key(sql, name, *by))).await
    }

    /// Adds an entry to the audit log about a change that is not part of this database. Every other
    /// change adds its own.
    async fn add_audit_entry(&self, by: ApiKeyId, entry: &NewEntry) -> Result<()> {
        run(self, Write, (by, entry.clone()), |sql, (by, NewEntry { action, subject, details })| {
            Box::pin(audit::note(sql, *by, *action, subject, Some(details.clone())))
        })
        .await
    }

    /// Returns the latest wanted entries of the audit log, at most `most`.
    async fn audit_entries(&self, filter: &EntryFilter, most: usize) -> Result<Vec<Entry>> {
        let args = (filter.clone(), most);
        run(self, List, args, |sql, (filter, most)| Box::pin(audit::audit_entries(sql, filter, *most))).await
    }

    /// Runs one step of the removal of old entries of the audit log. Returns whether some were
    /// removed, so that more may be left.
    async fn remove_old_audit_entries(&self, sweep: &Sweep) -> Result<bool> {
        run(self, LongWrite, sweep.clone(), |sql, sweep| Box::pin(audit::remove_old_entries(sql, sweep)))
            .await
    }
}

impl<D: Database> Keys for D {}
