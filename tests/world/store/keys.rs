//! The port [`Keys`] of a process in the simulated world.

use std::time::Duration;

use async_trait::async_trait;
use links::{
    SessionHash,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, NewKey, SecretNumber},
    audit::{Entry, EntryFilter, NewEntry},
};
use store::{Keys, StoreError};

use super::super::ways::FaultyStore;

#[async_trait]
impl Keys for FaultyStore {
    async fn add_api_key(&self, key: &NewKey, by: ApiKeyId) -> Result<Option<ApiKeyId>, StoreError> {
        self.pass(self.database.sqlite.add_api_key(key, by)).await
    }

    async fn add_first_api_key(&self, name: &str, hash: &KeyHash) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.add_first_api_key(name, hash)).await
    }

    async fn find_api_key(&self, hash: &KeyHash) -> Result<Option<Grant>, StoreError> {
        self.pass(self.database.sqlite.find_api_key(hash)).await
    }

    async fn find_grant(&self, id: ApiKeyId, secret: SecretNumber) -> Result<Option<Grant>, StoreError> {
        self.pass(self.database.sqlite.find_grant(id, secret)).await
    }

    async fn open_session(
        &self,
        hash: &SessionHash,
        by: (ApiKeyId, SecretNumber),
        lasts: Duration,
    ) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.open_session(hash, by, lasts)).await
    }

    async fn find_session(&self, hash: &SessionHash) -> Result<Option<Grant>, StoreError> {
        self.pass(self.database.sqlite.find_session(hash)).await
    }

    async fn end_session(&self, hash: &SessionHash) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.end_session(hash)).await
    }

    async fn key_names(&self, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        self.pass(self.database.sqlite.key_names(ids)).await
    }

    async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.pass(self.database.sqlite.list_api_keys()).await
    }

    async fn note_keys_used(&self, ids: &[ApiKeyId]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.note_keys_used(ids)).await
    }

    async fn rotate_api_key(
        &self,
        name: &str,
        hash: &KeyHash,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.rotate_api_key(name, hash, keep, by)).await
    }

    async fn revoke_api_key(&self, name: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.revoke_api_key(name, by)).await
    }

    async fn add_audit_entry(&self, by: ApiKeyId, entry: &NewEntry) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.add_audit_entry(by, entry)).await
    }

    async fn audit_entries(&self, filter: &EntryFilter, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.pass(self.database.sqlite.audit_entries(filter, most)).await
    }
}
