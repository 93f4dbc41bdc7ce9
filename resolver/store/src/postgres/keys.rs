//! The port [`Keys`] on Postgres.

use std::time::Duration;

use async_trait::async_trait;
use links::{
    SessionHash,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey, SecretNumber},
    audit::{Entry, EntryFilter, NewEntry},
};

use super::{PostgresStore, admin, transaction::PostgresSql};
use crate::{Keys, StoreError, sql};

impl PostgresStore {
    /// Runs a read that authenticates a call, and repeats it once after an error of the connection.
    async fn look_up<T>(
        &self,
        read: impl AsyncFnOnce(&mut PostgresSql<'_>) -> Result<T, StoreError> + Copy,
    ) -> Result<T, StoreError> {
        match self.run_on(&self.keys, read).await {
            // The connection may lead to a server that has restarted since.
            Err(StoreError::Postgres(_)) => self.run_on(&self.keys, read).await,
            answer => answer,
        }
    }
}

#[async_trait]
impl Keys for PostgresStore {
    async fn add_api_key(&self, key: &NewKey, by: ApiKeyId) -> Result<Option<ApiKeyId>, StoreError> {
        self.run(async |sql| sql::add_api_key(sql, key, by).await).await
    }

    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError> {
        self.within(async { admin::add_first_api_key(&mut *self.connection().await?, name, hash).await })
            .await
    }

    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError> {
        self.look_up(async |sql| sql::find_api_key(sql, hash).await).await
    }

    async fn find_grant(&self, id: ApiKeyId, secret: SecretNumber) -> Result<Option<Grant>, StoreError> {
        self.run_on(&self.keys, async |sql| sql::find_grant(sql, id, secret).await).await
    }

    async fn open_session(
        &self,
        hash: &SessionHash,
        by: (ApiKeyId, SecretNumber),
        lasts: Duration,
    ) -> Result<(), StoreError> {
        let lasts = sql::milliseconds(lasts);
        self.run(async |sql| sql::open_session(sql, hash, by, lasts).await).await
    }

    async fn find_session(&self, hash: &SessionHash) -> Result<Option<Grant>, StoreError> {
        self.look_up(async |sql| sql::find_session(sql, hash).await).await
    }

    async fn end_session(&self, hash: &SessionHash) -> Result<(), StoreError> {
        self.run(async |sql| sql::end_session(sql, hash).await).await
    }

    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::key_names(sql, ids).await).await
    }

    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.run(async |sql| sql::list_api_keys(sql).await).await
    }

    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError> {
        self.run(async |sql| sql::note_keys_used(sql, ids).await).await
    }

    async fn rotate_api_key(
        &self,
        name: &str,
        hash: &KeyHash,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<bool, StoreError> {
        let keep = sql::milliseconds(keep);
        self.run(async |sql| sql::rotate_api_key(sql, name, hash, keep, by).await).await
    }

    async fn revoke_api_key(&self, name: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        self.run(async |sql| sql::revoke_api_key(sql, name, by).await).await
    }

    async fn add_audit_entry(&self, by: ApiKeyId, entry: &NewEntry) -> Result<(), StoreError> {
        self.run(async |sql| sql::add_audit_entry(sql, by, entry).await).await
    }

    async fn audit_entries(&self, filter: &EntryFilter, most: usize) -> Result<Vec<Entry>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run_on(&self.lists, async |sql| sql::audit_entries(sql, filter, most).await).await
    }
}
