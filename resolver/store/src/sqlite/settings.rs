//! The port [`Settings`] on SQLite.

use async_trait::async_trait;
use codes::{Fingerprint, Keyspace, KeyspaceIndex};
use jiff::Timestamp;
use links::{Authority, DomainEdit, DomainId, api_key::ApiKeyId, targets::TargetRule};

use super::{SqliteStore, calls};
use crate::{DomainEdited, DomainRemoved, Settings, SettingsPoll, SettingsVersion, StoreError, sql};

#[async_trait]
impl Settings for SqliteStore {
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        let known = known.cloned();
        let asked =
            self.reader.read(async move |sql| sql::shared_settings(sql, known.as_ref()).await).await?;
        // SQLite's clock is this machine's.
        Ok(SettingsPoll { now: Timestamp::now(), settings: asked })
    }

    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
        let mine = mine.to_vec();
        self.writer.run(move |connection| calls::adopt_keyspaces(connection, &mine)).await
    }

    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError> {
        self.reader.run(|connection| calls::fingerprint(connection)).await
    }

    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError> {
        let mine = mine.clone();
        self.writer.run(move |connection| calls::adopt_fingerprint(connection, &mine)).await
    }

    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError> {
        let authority = authority.clone();
        self.writer.write(async move |sql| sql::add_domain(sql, &authority, most, by).await).await
    }

    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        let edit = edit.clone();
        self.writer.write(async move |sql| sql::edit_domain(sql, id, &edit, by).await).await
    }

    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        self.writer.write(async move |sql| sql::remove_domain(sql, id, by).await).await
    }

    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError> {
        self.lister.read(async move |sql| sql::domains_with_links(sql, of).await).await
    }

    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError> {
        let rule = rule.clone();
        self.writer.write(async move |sql| sql::set_target(sql, &rule, by).await).await
    }

    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        let pattern = pattern.to_owned();
        self.writer.write(async move |sql| sql::remove_target(sql, &pattern, by).await).await
    }
}
