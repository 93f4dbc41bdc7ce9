//! The port [`Settings`] on Postgres.

use async_trait::async_trait;
use codes::{Fingerprint, Keyspace, KeyspaceIndex};
use links::{Authority, DomainEdit, DomainId, api_key::ApiKeyId, targets::TargetRule};
use tokio::time::Instant;

use super::{
    PostgresStore, admin, budget::Server, deadline::DEADLINE, replica::Position, timestamp::timestamp,
};
use crate::{DomainEdited, DomainRemoved, Settings, SettingsPoll, SettingsVersion, StoreError, sql};

#[async_trait]
impl Settings for PostgresStore {
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        // Every resolver polls four times a second, and the version rarely changes.
        let sent = Instant::now();
        let rows = self.settings_reader.read(DEADLINE, &[]).await?;
        self.address.observer().answered(Server::Database);
        let row =
            rows.first().ok_or_else(|| StoreError::Corrupt("table settings_version is empty".to_owned()))?;
        let version = SettingsVersion { number: row.try_get(0)?, copy: row.try_get(1)? };
        let start = timestamp(row, 4)?;
        self.positions.note(sent, Position { start, at: row.try_get(3)? }, row.try_get(5)?);
        let started = Some(start);
        self.server_start.send_if_modified(|seen| std::mem::replace(seen, started) != started);
        let settings = match known.is_some_and(|known| version.is(known)) {
            true => None,
            false => self.run(async |sql| sql::shared_settings(sql, known).await).await?,
        };
        if let Some(settings) = &settings {
            self.note_subscriptions(&settings.webhooks);
        }
        Ok(SettingsPoll { now: timestamp(row, 2)?, settings })
    }

    async fn adopt_keyspaces(&self, mine: &[Keyspace]) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
        self.within(async { admin::adopt_keyspaces(&mut *self.connection().await?, mine).await }).await
    }

    async fn fingerprint(&self) -> Result<Option<Fingerprint>, StoreError> {
        self.within(async { admin::fingerprint(&*self.connection().await?).await }).await
    }

    async fn adopt_fingerprint(&self, mine: &Fingerprint) -> Result<Fingerprint, StoreError> {
        self.within(async { admin::adopt_fingerprint(&*self.connection().await?, mine).await }).await
    }

    async fn add_domain(
        &self,
        authority: &Authority,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<DomainId>, StoreError> {
        self.run(async |sql| sql::add_domain(sql, authority, most, by).await).await
    }

    async fn edit_domain(
        &self,
        id: DomainId,
        edit: &DomainEdit,
        by: ApiKeyId,
    ) -> Result<DomainEdited, StoreError> {
        self.run(async |sql| sql::edit_domain(sql, id, edit, by).await).await
    }

    async fn remove_domain(&self, id: DomainId, by: ApiKeyId) -> Result<DomainRemoved, StoreError> {
        self.run(async |sql| sql::remove_domain(sql, id, by).await).await
    }

    async fn domains_with_links(&self, of: Option<ApiKeyId>) -> Result<Vec<DomainId>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::domains_with_links(sql, of).await).await
    }

    async fn set_target(&self, rule: &TargetRule, by: ApiKeyId) -> Result<(), StoreError> {
        self.run(async |sql| sql::set_target(sql, rule, by).await).await
    }

    async fn remove_target(&self, pattern: &str, by: ApiKeyId) -> Result<bool, StoreError> {
        self.run(async |sql| sql::remove_target(sql, pattern, by).await).await
    }
}
