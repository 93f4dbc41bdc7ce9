//! The port [`Keys`] on SQLite.

use std::time::Duration;

use async_trait::async_trait;
use links::{
    SessionHash,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey, SecretNumber},
    audit::{Entry, EntryFilter, NewEntry},
};

use super::{SqliteStore, calls};
use crate::{Keys, StoreError, sql};

#[async_trait]
impl Keys for SqliteStore {
    async fn add_api_key(&self, key: &NewKey, by: ApiKeyId) -> Result<Option<ApiKeyId>, StoreError> {
        let key = key.clone();
        self.writer.write(async move |sql| sql::add_api_key(sql, &key, by).await).await
    }

    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError> {
        let (name, hash) = (name.to_owned(), hash.clone());
        self.writer.run(move |connection| calls::add_first_api_key(connection, &name, &hash)).await
    }

    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError> {
        let hash = hash.clone();
        self.reader.read(async move |sql| sql::find_api_key(sql, &hash).await).await
    }

    async fn find_grant(&self, id: ApiKeyId, secret: SecretNumber) -> Result<Option<Grant>, StoreError> {
        self.reader.read(async move |sql| sql::find_grant(sql, id, secret).await).await
    }

    async fn open_session(
        &self,
        hash: &SessionHash,
        by: (ApiKeyId, SecretNumber),
        lasts: Duration,
    ) -> Result<(), StoreError> {
        let (hash, lasts) = (hash.clone(), sql::milliseconds(lasts));
        self.writer.write(async move |sql| sql::open_session(sql, &hash, by, lasts).await).await
    }

    async fn find_session(&self, hash: &SessionHash) -> Result<Option<Grant>, StoreError> {
        let hash = hash.clone();
        self.reader.read(async move |sql| sql::find_session(sql, &hash).await).await
    }

    async fn end_session(&self, hash: &SessionHash) -> Result<(), StoreError> {
        let hash = hash.clone();
        self.writer.write(async move |sql| sql::end_session(sql, &hash).await).await
    }

    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        let ids = ids.to_vec();
        self.reader.read(async move |sql| sql::key_names(sql, &ids).await).await
    }

    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.reader.read(async |sql| sql::list_api_keys(sql).await).await
    }

    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        self.writer.write(async move |sql| sql::note_keys_used(sql, &ids).await).await
    }

    async fn rotate_api_key(
        &self,
        name: &str,
        hash: &KeyHash,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<bool, StoreError> {
        let (name, hash, keep) = (name.to_owned(), hash.clone(), sql::milliseconds(keep));
        self.writer.write(async move |sql| sql::rotate_api_key(sql, &name, &hash, keep, by).await).await
    }

    async fn revoke_api_key(&self, name: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.writer.write(async move |sql| sql::revoke_api_key(sql, &name, by).await).await
    }

    async fn add_audit_entry(&self, by: ApiKeyId, entry: &NewEntry) -> Result<(), StoreError> {
        let entry = entry.clone();
        self.writer.write(async move |sql| sql::add_audit_entry(sql, by, &entry).await).await
    }

    async fn audit_entries(&self, filter: &EntryFilter, most: usize) -> Result<Vec<Entry>, StoreError> {
        let (filter, most) = (filter.clone(), i64::try_from(most).unwrap_or(i64::MAX));
        self.lister.read(async move |sql| sql::audit_entries(sql, &filter, most).await).await
    }
}
