//! The port [`Settings`] of a process in the simulated world.

use async_trait::async_trait;
use codes::{Fingerprint, Keyspace, KeyspaceIndex};
use links::{Authority, DomainEdit, DomainId, api_key::ApiKeyId, targets::TargetRule};
use store::{DomainEdited, DomainRemoved, Settings, SettingsPoll, SettingsVersion, StoreError};

use super::super::ways::FaultyStore;

#[async_trait]
impl Settings for FaultyStore {
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        self.poll(known).await
    }

    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
        self.pass(self.database.sqlite.adopt_keyspaces(mine)).await
    }

    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError> {
        self.pass(self.database.sqlite.fingerprint()).await
    }

    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError> {
        self.pass(self.database.sqlite.adopt_fingerprint(mine)).await
    }

    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError> {
        self.pass(self.database.sqlite.add_domain(authority, most, by)).await
    }

    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        self.pass(self.database.sqlite.edit_domain(id, edit, by)).await
    }

    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        self.pass(self.database.sqlite.remove_domain(id, by)).await
    }

    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError> {
        self.pass(self.database.sqlite.domains_with_links(of)).await
    }

    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.set_target(rule, by)).await
    }

    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.remove_target(pattern, by)).await
    }
}
